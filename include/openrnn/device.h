// What a device is: memory, copies, and the operations besides the recurrent one that training
// needs. Who only runs networks in the host's memory never needs this header.
#pragma once

#include <memory>
#include <vector>

#include "openrnn/base.h"

namespace openrnn {

class Engine;

/// kSoftplus is log(1 + e^x).
enum class UnaryOp : std::uint8_t {
  kRelu,
  kTanh,
  kSigmoid,
  kExp,
  kNegate,
  kSquare,
  kAbs,
  kSqrt,
  kLog,
  kSoftplus
};
/// kMaximum and kMinimum are NaN where an operand is; kPower is pow of IEEE 754.
enum class BinaryOp : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kPower
};
/// False where an operand is NaN.
enum class CompareOp : std::uint8_t { kEqual, kLess, kLessEqual };

/// c[m, n] = sum over k of op(a)[m, k] * op(b)[k, n] in the order of docs/numerics.md, added to c
/// itself when accumulating; bias[n] joins at the end. float16 and bfloat16 are summed in float. A
/// GPU adds in an order of its own, the same each time.
struct MatmulArgs {
  DType dtype = DType::kFloat32;
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;  // [m, k], or [k, m] when transposed
  const void* b = nullptr;  // [k, n], or [n, k] when transposed
  const void* bias = nullptr;
  void* c = nullptr;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
};

/// Copies `count` blocks of `bytes`; block i starts at i * stride bytes on each side.
struct BlockCopy {
  std::int64_t count = 0;
  std::size_t bytes = 0;
  const void* from = nullptr;
  std::size_t from_stride = 0;
  void* to = nullptr;
  std::size_t to_stride = 0;
};

/// Copies the elements of an array of any number of dimensions: element (i, j, ..) lies at
/// i * strides[0] + j * strides[1] + .. on each side. Strides are in elements and may be 0 or
/// negative, where nothing is written twice.
struct StridedCopy {
  std::size_t element = 0;  // bytes, 1, 2, 4 or 8
  Shape shape;
  const void* from = nullptr;
  std::vector<std::int64_t> from_strides;
  void* to = nullptr;
  std::vector<std::int64_t> to_strides;
};
/// The same copy with as few dimensions as it takes: those of size 1 are gone, and those that lie
/// one inside the other on both sides are one.
OPENRNN_API StridedCopy collapsed(const StridedCopy& copy);

/// out[i] = mask[i] ? a[i] : b[i], of `element` bytes; null a or b: 0.
struct SelectArgs {
  std::size_t element = 0;  // bytes, 2, 4 or 8
  std::int64_t size = 0;
  const std::uint8_t* mask = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
};

/// *out = factor * the sum of x or of its squares, in double, rounded once to out_dtype.
struct SumArgs {
  DType dtype = DType::kFloat32;
  std::int64_t size = 0;
  const void* x = nullptr;
  bool squares = false;
  double factor = 1.0;
  DType out_dtype = DType::kFloat32;
  void* out = nullptr;
};

/// Whether a training step is taken, and how: found by a device from the step's own numbers, in its
/// memory, so that what follows reads it there and nobody waits.
struct StepDecision {
  double norm = 0.0;    // of all gradients together
  double factor = 1.0;  // of all gradients: what clipping leaves of them
  double loss = 0.0;
  double taken = 1.0;  // 0: something is not finite, and the step changes nothing
};

/// Values between two bounds, which are rounded to dtype: out[i] = min(max(x[i], low), high); with
/// dy its gradient, out[i] = dy[i] where low <= x[i] <= high, else 0. NaN passes, and so does its
/// gradient.
struct ClipArgs {
  DType dtype = DType::kFloat32;
  std::int64_t size = 0;
  double low = 0.0, high = 0.0;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* out = nullptr;
};

/// A step is taken if the norm is finite, and the loss where that decides too. A norm above
/// `clip_norm` makes the factor clip_norm * min(1 / norm, 1 / clip_norm); 0: no clipping.
struct DecisionArgs {
  std::span<const ConstArrayView> gradients;
  double clip_norm = 0.0;
  DType loss_dtype = DType::kFloat32;
  const void* loss = nullptr;  // one element; null: 0
  bool loss_decides = false;
  StepDecision* decision = nullptr;  // of the device's memory
};
/// The decision from the sum of all squares and the loss.
OPENRNN_API StepDecision decide(double squares, double loss, const DecisionArgs& args);

/// Bytes of a device on their way to the host.
class OPENRNN_API Reading {
 public:
  virtual ~Reading() = default;
  Reading() = default;
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  /// The bytes as they were when the reading was asked for. Waits for the work given to the device
  /// until then, and for no later one. Not for two threads at once.
  virtual const void* bytes() = 0;
};

/// out = x * mask over [rows, cols], each row r with dropout_mask(key, {layer 2^32 - 1, time n /
/// 2^20, row n % 2^20}). n is r; but where `key` is of a part of a batch, the number that the row
/// has in the array of the whole one: x is [before, batch, after, cols], rows = before * batch *
/// after, and element i of it in the batch is key.first_row + i there.
struct DropoutArgs {
  DType dtype = DType::kFloat32;
  std::int64_t rows = 0, cols = 0;
  std::int64_t before = 1, after = 1;
  DropoutKey key;
  double rate = 0.0;
  const void* x = nullptr;
  void* out = nullptr;  // may be x
};

/// Rows of logits against class labels. A label below 0 leaves its row out: loss 0, gradient 0.
/// "wide" is float64 when dtype is, else float32.
struct CrossEntropyArgs {
  DType dtype = DType::kFloat32;
  std::int64_t rows = 0, classes = 0;
  const void* logits = nullptr;          // [rows, classes]
  const std::int32_t* labels = nullptr;  // [rows]; null when only probabilities are wanted
  void* losses = nullptr;                // [rows], wide, nats; null: not wanted
  void* probabilities = nullptr;         // [rows, classes], wide; null: not wanted
};

/// logits_gradient[r, c] = (probabilities[r, c] - (c == labels[r])) * row_gradients[r], rounded to
/// dtype once; 0 for a label below 0.
struct CrossEntropyGradientArgs {
  DType dtype = DType::kFloat32;
  std::int64_t rows = 0, classes = 0;
  const void* probabilities = nullptr;  // [rows, classes], wide
  const std::int32_t* labels = nullptr;
  const void* row_gradients = nullptr;  // [rows], wide
  void* logits_gradient = nullptr;      // [rows, classes], dtype
};

enum class OptimizerKind : std::uint8_t {
  kGradientDescent,
  kMomentum,
  kNesterov,
  kAdagrad,
  kRmsProp,
  kCenteredRmsProp,
  kAdam,
  kAdamW
};

/// One update of one variable; the formulas are those of tf.train. `dtype` is float32 or float64.
struct OptimizerStep {
  OptimizerKind kind = OptimizerKind::kGradientDescent;
  DType dtype = DType::kFloat32;
  std::int64_t size = 0;
  void* variable = nullptr;
  const void* gradient = nullptr;
  std::array<void*, 3> slots{};  // in the order of the optimizer's slot names
  double learning_rate = 0.0;    // adam: with both bias corrections in it
  /// adam_w: `decay` is the factor of the variable before the step.
  double momentum = 0.0, decay = 0.0, beta1 = 0.0, beta2 = 0.0, epsilon = 0.0;
  /// Memory of the device: nothing is done unless it is taken, and the gradient is scaled by its
  /// factor as `scale` does; null: taken, factor 1.
  const StepDecision* decision = nullptr;
};

/// Memory, and the few operations besides the recurrent one that training needs. Pointers are to
/// memory of this device unless said otherwise. Every operation gives the same bits whatever the
/// number of threads and the instruction set: sums have one order, and arithmetic results below the
/// smallest normal number are 0. Thread-safe.
class OPENRNN_API Device {
 public:
  virtual ~Device() = default;
  /// 'cpu', 'gpu:0'.
  virtual std::string_view name() const = 0;
  /// The engine whose pointers are of this device; null on the cpu device, whose arrays any engine
  /// of the host's memory takes.
  virtual const Engine* engine() const { return nullptr; }
  /// 64-byte aligned, not cleared, given back to a pool when the last owner is gone.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) const = 0;
  virtual void zero(void* to, std::size_t bytes) const = 0;
  virtual void copy(const BlockCopy& copy) const = 0;
  virtual void upload(void* to, const void* host, std::size_t bytes) const = 0;
  virtual void download(void* host, const void* from, std::size_t bytes) const = 0;
  /// New memory with a copy of the host's bytes, all of which it has read when it returns.
  virtual std::shared_ptr<void> bring(const void* host, std::size_t bytes) const;

  /// The stream of this device's work as other libraries know it, a cudaStream_t; 0 on the cpu,
  /// whose work is done when a call returns.
  virtual std::uintptr_t stream() const { return 0; }
  /// Work that is given to that stream from now on waits for all work given to this device so far.
  virtual void go_before(std::uintptr_t stream) const { static_cast<void>(stream); }
  /// Returns when all work given so far is done.
  virtual void wait() const {}

  virtual void matmul(const MatmulArgs& args) const = 0;
  virtual void unary(UnaryOp op, DType dtype, std::int64_t size, const void* x, void* y) const = 0;
  /// dx from the op's input x, output y and dy.
  virtual void unary_gradient(UnaryOp op, DType dtype, std::int64_t size, const void* x,
                              const void* y, const void* dy, void* dx) const = 0;
  virtual void binary(BinaryOp op, DType dtype, std::int64_t size, const void* a, const void* b,
                      void* c) const = 0;
  /// mask[i] = 1 where it holds, else 0.
  virtual void compare(CompareOp op, DType dtype, std::int64_t size, const void* a, const void* b,
                       std::uint8_t* mask) const = 0;
  virtual void select(const SelectArgs& args) const = 0;
  virtual void copy_strided(const StridedCopy& copy) const = 0;
  /// y[r, c] = x[r, c] + row[c].
  virtual void add_row(DType dtype, std::int64_t rows, std::int64_t cols, const void* x,
                       const void* row, void* y) const = 0;
  /// out[c] = sum over r of x[r, c], in the order of docs/numerics.md.
  virtual void column_sum(DType dtype, std::int64_t rows, std::int64_t cols, const void* x,
                          void* out) const = 0;
  /// y = factor * x; y may be x.
  virtual void scale(DType dtype, std::int64_t size, double factor, const void* x,
                     void* y) const = 0;
  virtual void clip(const ClipArgs& args) const = 0;
  /// y[i] = factor * *scalar, which is of scalar_dtype; null stands for 1.
  virtual void fill(DType dtype, std::int64_t size, double factor, DType scalar_dtype,
                    const void* scalar, void* y) const = 0;
  /// y += x.
  virtual void accumulate(DType dtype, std::int64_t size, const void* x, void* y) const = 0;
  virtual void convert(std::int64_t size, DType from_dtype, const void* from, DType to_dtype,
                       void* to) const = 0;
  /// In double, in an order of their own that depends on the size alone.
  virtual double sum(DType dtype, std::int64_t size, const void* x) const = 0;
  virtual double sum_of_squares(DType dtype, std::int64_t size, const void* x) const = 0;
  /// The sum_of_squares of the arrays, added in their order; a GPU is waited for once.
  virtual double total_of_squares(std::span<const ConstArrayView> arrays) const;
  /// Sums that stay on the device: nobody waits.
  virtual void sum_to(const SumArgs& args) const;
  virtual void decide_step(const DecisionArgs& args) const;
  /// Copies the bytes if the step is taken; both sides begin at multiples of 4.
  virtual void copy_if(const StepDecision* decision, std::size_t bytes, const void* from,
                       void* to) const;
  /// A download that does not wait until it is asked for its bytes.
  virtual std::unique_ptr<Reading> read_later(const void* from, std::size_t bytes) const;
  /// out[i] = table[indices[i]]; the indices were checked before.
  virtual void gather_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* table,
                           const std::int32_t* indices, void* out) const = 0;
  /// table[indices[i]] += rows[i], i ascending.
  virtual void scatter_add_rows(DType dtype, std::int64_t count, std::int64_t cols,
                                const void* rows, const std::int32_t* indices,
                                void* table) const = 0;
  virtual void softmax_cross_entropy(const CrossEntropyArgs& args) const = 0;
  virtual void softmax_cross_entropy_gradient(const CrossEntropyGradientArgs& args) const = 0;
  /// dx[r, c] = y[r, c] * (dy[r, c] - sum over ascending c of y * dy), y being a softmax.
  virtual void softmax_gradient(DType dtype, std::int64_t rows, std::int64_t cols, const void* y,
                                const void* dy, void* dx) const = 0;
  virtual void dropout(const DropoutArgs& args) const = 0;
  virtual void optimizer_step(const OptimizerStep& step) const = 0;
};

/// A dense array in the memory of a device. Copies share the memory, so whoever writes must be the
/// only owner (see make_unique_owner).
class OPENRNN_API DeviceArray {
 public:
  DeviceArray() = default;
  /// Not cleared.
  DeviceArray(const Device& device, DType dtype, Shape shape);
  /// Every element 0.
  static DeviceArray zeros(const Device& device, DType dtype, Shape shape);
  /// Every element `value`, of a floating dtype.
  static DeviceArray full(const Device& device, DType dtype, Shape shape, double value);
  /// A copy on the device.
  static DeviceArray from_host(const Device& device, const ConstArrayView& host);
  /// Memory of this device that is another's: `owner` keeps it alive. For calls that only read it.
  static DeviceArray borrow(const Device& device, const ConstArrayView& memory,
                            const std::shared_ptr<void>& owner) {
    DeviceArray result;
    result.device_ = &device;
    result.dtype_ = memory.dtype;
    result.shape_ = memory.shape;
    result.memory_ = std::shared_ptr<void>(owner, const_cast<void*>(memory.data));
    result.borrowed_ = true;
    return result;
  }

  bool empty() const noexcept { return device_ == nullptr; }
  /// Made by borrow, or shares the memory of one that was.
  bool borrowed() const noexcept { return borrowed_; }
  const Device& device() const { return *device_; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t size() const { return shape_size(shape_); }
  std::size_t size_bytes() const { return static_cast<std::size_t>(size()) * dtype_size(dtype_); }
  const void* data() const noexcept { return memory_.get(); }
  /// For the maker of the array, before it is shared.
  void* mutable_data() noexcept { return memory_.get(); }
  /// Copies the elements unless nobody else shares them; borrowed ones always.
  void make_unique_owner();
  /// A share in the elements: while it is held, who would write them makes a copy first. Who owns
  /// borrowed ones may write them all the same.
  std::shared_ptr<const void> share() const noexcept { return memory_; }
  /// The same memory under other dimensions. Throws: ArgumentError if the sizes differ.
  DeviceArray reshaped(Shape shape) const;
  /// A copy on the host.
  Array to_host() const;
  /// On the cpu device only: the elements where they lie. Throws: StateError on another device.
  ConstArrayView host_view() const;

 private:
  const Device* device_ = nullptr;
  DType dtype_ = DType::kFloat32;
  bool borrowed_ = false;
  Shape shape_;
  std::shared_ptr<void> memory_;
};

}  // namespace openrnn
