#include "cpu/device/cpu_device.h"

#include <cstring>

#include "cpu/device/loops.h"
#include "cpu/gemm/gemm.h"
#include "cpu/memory/pool.h"

namespace openrnn {
namespace {

class CpuDevice final : public Device {
 public:
  constexpr CpuDevice() = default;
  constexpr ~CpuDevice() override {}  // a defaulted one comes too late for g++ 12
  std::string_view name() const override { return "cpu"; }
  std::shared_ptr<void> allocate(std::size_t bytes) const override {
    return cpu::MemoryPool::process().allocate(bytes);
  }
  void zero(void* to, std::size_t bytes) const override {
    if (bytes) std::memset(to, 0, bytes);
  }
  void copy(const BlockCopy& copy) const override {
    if (copy.bytes == 0) return;
    const auto* from = static_cast<const std::byte*>(copy.from);
    auto* to = static_cast<std::byte*>(copy.to);
    for (std::int64_t i = 0; i < copy.count; ++i, from += copy.from_stride, to += copy.to_stride) {
      std::memcpy(to, from, copy.bytes);
    }
  }
  void upload(void* to, const void* host, std::size_t bytes) const override {
    if (bytes) std::memcpy(to, host, bytes);
  }
  void download(void* host, const void* from, std::size_t bytes) const override {
    if (bytes) std::memcpy(host, from, bytes);
  }

  void matmul(const MatmulArgs& args) const override {
    cpu::gemm({.dtype = args.dtype,
               .trans_a = args.transpose_a,
               .trans_b = args.transpose_b,
               .m = args.m,
               .n = args.n,
               .k = args.k,
               .a = args.a,
               .lda = args.transpose_a ? args.m : args.k,
               .b = args.b,
               .ldb = args.transpose_b ? args.k : args.n,
               .c = args.c,
               .ldc = args.n,
               .bias = args.bias,
               .accumulate = args.accumulate});
  }
  void unary(UnaryOp op, DType dtype, std::int64_t size, const void* x, void* y) const override {
    cpu::device::unary(op, dtype, size, x, y);
  }
  void unary_gradient(UnaryOp op, DType dtype, std::int64_t size, const void* x, const void* y,
                      const void* dy, void* dx) const override {
    cpu::device::unary_gradient(op, dtype, size, x, y, dy, dx);
  }
  void binary(BinaryOp op, DType dtype, std::int64_t size, const void* a, const void* b,
              void* c) const override {
    cpu::device::binary(op, dtype, size, a, b, c);
  }
  void compare(CompareOp op, DType dtype, std::int64_t size, const void* a, const void* b,
               std::uint8_t* mask) const override {
    cpu::device::compare(op, dtype, size, a, b, mask);
  }
  void select(const SelectArgs& args) const override { cpu::device::select(args); }
  void copy_strided(const StridedCopy& copy) const override { cpu::device::copy_strided(copy); }
  void add_row(DType dtype, std::int64_t rows, std::int64_t cols, const void* x, const void* row,
               void* y) const override {
    cpu::device::add_row(dtype, rows, cols, x, row, y);
  }
  void column_sum(DType dtype, std::int64_t rows, std::int64_t cols, const void* x,
                  void* out) const override {
    cpu::device::column_sum(dtype, rows, cols, x, out);
  }
  void clip(const ClipArgs& args) const override { cpu::device::clip(args); }
  void scale(DType dtype, std::int64_t size, double factor, const void* x, void* y) const override {
    cpu::device::scale(dtype, size, factor, x, y);
  }
  void fill(DType dtype, std::int64_t size, double factor, DType scalar_dtype, const void* scalar,
            void* y) const override {
    cpu::device::fill(dtype, size, factor, scalar_dtype, scalar, y);
  }
  void accumulate(DType dtype, std::int64_t size, const void* x, void* y) const override {
    cpu::device::accumulate(dtype, size, x, y);
  }
  void convert(std::int64_t size, DType from_dtype, const void* from, DType to_dtype,
               void* to) const override {
    cpu::device::convert(size, from_dtype, from, to_dtype, to);
  }
  double sum(DType dtype, std::int64_t size, const void* x) const override {
    return cpu::device::sum(dtype, size, x);
  }
  double sum_of_squares(DType dtype, std::int64_t size, const void* x) const override {
    return cpu::device::sum_of_squares(dtype, size, x);
  }
  void gather_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* table,
                   const std::int32_t* indices, void* out) const override {
    cpu::device::gather_rows(dtype, count, cols, table, indices, out);
  }
  void scatter_add_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* rows,
                        const std::int32_t* indices, void* table) const override {
    cpu::device::scatter_add_rows(dtype, count, cols, rows, indices, table);
  }
  void softmax_cross_entropy(const CrossEntropyArgs& args) const override {
    cpu::device::softmax_cross_entropy(args);
  }
  void softmax_cross_entropy_gradient(const CrossEntropyGradientArgs& args) const override {
    cpu::device::softmax_cross_entropy_gradient(args);
  }
  void softmax_gradient(DType dtype, std::int64_t rows, std::int64_t cols, const void* y,
                        const void* dy, void* dx) const override {
    cpu::device::softmax_gradient(dtype, rows, cols, y, dy, dx);
  }
  void dropout(const DropoutArgs& args) const override { cpu::device::dropout(args); }
  void optimizer_step(const OptimizerStep& step) const override {
    cpu::device::optimizer_step(step);
  }
};

// A constant: initialization of a static local by another thread at a fork never ends in the child.
// And never destroyed: arrays of other static objects may outlive any order of destruction.
constexpr CpuDevice kDevice;

}  // namespace

const Device& cpu_device() { return kDevice; }

}  // namespace openrnn
