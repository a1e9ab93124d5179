// The device 'gpu:N'.
#pragma once

#include <mutex>

#include "cudnn/device/readings.h"
#include "cudnn/gpu/context.h"
#include "openrnn/device.h"

namespace openrnn::cudnn {

/// Every operation enqueues and returns; download, sums that return a value, and a reading's
/// bytes() wait. Results have the bits of the cpu device, except: products are cuBLAS's, whose sums
/// have another order; a NaN has other bits; inside an operation float64 has subnormal numbers.
/// Errors of the work itself are reported by a later call. Lives as long as the process.
class GpuDevice final : public Device {
 public:
  /// `engine` computes on the memory of this device.
  GpuDevice(Context& context, const Engine* engine);

  std::string_view name() const override { return name_; }
  const Engine* engine() const override { return engine_; }
  Context& context() const { return context_; }

  std::shared_ptr<void> allocate(std::size_t bytes) const override;
  void zero(void* to, std::size_t bytes) const override;
  void copy(const BlockCopy& copy) const override;
  void upload(void* to, const void* host, std::size_t bytes) const override;
  void download(void* host, const void* from, std::size_t bytes) const override;
  std::shared_ptr<void> bring(const void* host, std::size_t bytes) const override;

  std::uintptr_t stream() const override;
  void go_before(std::uintptr_t stream) const override;
  void wait() const override;

  void matmul(const MatmulArgs& args) const override;
  void unary(UnaryOp op, DType dtype, std::int64_t size, const void* x, void* y) const override;
  void unary_gradient(UnaryOp op, DType dtype, std::int64_t size, const void* x, const void* y,
                      const void* dy, void* dx) const override;
  void binary(BinaryOp op, DType dtype, std::int64_t size, const void* a, const void* b,
              void* c) const override;
  void compare(CompareOp op, DType dtype, std::int64_t size, const void* a, const void* b,
               std::uint8_t* mask) const override;
  void select(const SelectArgs& args) const override;
  void copy_strided(const StridedCopy& copy) const override;
  void add_row(DType dtype, std::int64_t rows, std::int64_t cols, const void* x, const void* row,
               void* y) const override;
  void column_sum(DType dtype, std::int64_t rows, std::int64_t cols, const void* x,
                  void* out) const override;
  void clip(const ClipArgs& args) const override;
  void scale(DType dtype, std::int64_t size, double factor, const void* x, void* y) const override;
  void fill(DType dtype, std::int64_t size, double factor, DType scalar_dtype, const void* scalar,
            void* y) const override;
  void accumulate(DType dtype, std::int64_t size, const void* x, void* y) const override;
  void convert(std::int64_t size, DType from_dtype, const void* from, DType to_dtype,
               void* to) const override;
  double sum(DType dtype, std::int64_t size, const void* x) const override;
  double sum_of_squares(DType dtype, std::int64_t size, const void* x) const override;
  double total_of_squares(std::span<const ConstArrayView> arrays) const override;
  void sum_to(const SumArgs& args) const override;
  void decide_step(const DecisionArgs& args) const override;
  void copy_if(const StepDecision* decision, std::size_t bytes, const void* from,
               void* to) const override;
  std::unique_ptr<Reading> read_later(const void* from, std::size_t bytes) const override;
  void gather_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* table,
                   const std::int32_t* indices, void* out) const override;
  void scatter_add_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* rows,
                        const std::int32_t* indices, void* table) const override;
  void softmax_cross_entropy(const CrossEntropyArgs& args) const override;
  void softmax_cross_entropy_gradient(const CrossEntropyGradientArgs& args) const override;
  void softmax_gradient(DType dtype, std::int64_t rows, std::int64_t cols, const void* y,
                        const void* dy, void* dx) const override;
  void dropout(const DropoutArgs& args) const override;
  void optimizer_step(const OptimizerStep& step) const override;

 private:
  /// Blocks of words, gathered by `indices` unless null.
  void copy_blocks(const BlockCopy& copy, const std::int32_t* indices) const;
  /// Multiplies by cuBLAS: c = a b + beta c.
  void product(const MatmulArgs& args, double beta) const;

  Context& context_;
  const Engine* engine_;
  std::string name_;
  mutable Readings readings_;
  mutable std::mutex blas_mutex_;  // a handle is for one thread at a time
  mutable cublasHandle_t blas_ = nullptr;
  mutable std::shared_ptr<void> blas_workspace_;
};

}  // namespace openrnn::cudnn
