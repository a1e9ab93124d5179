// To be replaced: memory alone.
#include <array>
#include <atomic>

#include "base/message.h"
#include "cudnn/gpu/context.h"
#include "cudnn/rnn/cudnn_engine.h"
#include "engine/cudnn_entry.h"

namespace openrnn {
namespace {

[[noreturn]] void later() { throw UnsupportedError("[device] not yet, expected later"); }

class GpuDevice : public Device {
 public:
  explicit GpuDevice(int ordinal)
      : name_(message("gpu:", ordinal)), context_(cudnn::Context::of(ordinal)), ordinal_(ordinal) {}
  std::string_view name() const override { return name_; }
  const Engine* engine() const override { return &cudnn::cudnn_engine(ordinal_); }
  std::shared_ptr<void> allocate(std::size_t bytes) const override {
    return context_.allocate(bytes);
  }
  void zero(void* to, std::size_t bytes) const override {
    const cudnn::Context::Current current(context_);
    context_.zero(to, bytes);
  }
  void copy(const BlockCopy& c) const override {
    const cudnn::Context::Current current(context_);
    for (std::int64_t i = 0; i < c.count; ++i) {
      const auto n = static_cast<std::size_t>(i);
      context_.copy(static_cast<char*>(c.to) + n * c.to_stride,
                    static_cast<const char*>(c.from) + n * c.from_stride, c.bytes);
    }
  }
  void upload(void* to, const void* host, std::size_t bytes) const override {
    const cudnn::Context::Current current(context_);
    context_.copy_in(to, host, bytes);
  }
  void download(void* host, const void* from, std::size_t bytes) const override {
    const cudnn::Context::Current current(context_);
    context_.copy_out(host, from, bytes);
  }
  void matmul(const MatmulArgs&) const override { later(); }
  void unary(UnaryOp, DType, std::int64_t, const void*, void*) const override { later(); }
  void unary_gradient(UnaryOp, DType, std::int64_t, const void*, const void*, const void*,
                      void*) const override {
    later();
  }
  void binary(BinaryOp, DType, std::int64_t, const void*, const void*, void*) const override {
    later();
  }
  void add_row(DType, std::int64_t, std::int64_t, const void*, const void*, void*) const override {
    later();
  }
  void column_sum(DType, std::int64_t, std::int64_t, const void*, void*) const override { later(); }
  void scale(DType, std::int64_t, double, const void*, void*) const override { later(); }
  void fill(DType, std::int64_t, double, DType, const void*, void*) const override { later(); }
  void accumulate(DType, std::int64_t, const void*, void*) const override { later(); }
  void convert(std::int64_t, DType, const void*, DType, void*) const override { later(); }
  double sum(DType, std::int64_t, const void*) const override { later(); }
  double sum_of_squares(DType, std::int64_t, const void*) const override { later(); }
  void gather_rows(DType, std::int64_t, std::int64_t, const void*, const std::int32_t*,
                   void*) const override {
    later();
  }
  void scatter_add_rows(DType, std::int64_t, std::int64_t, const void*, const std::int32_t*,
                        void*) const override {
    later();
  }
  void softmax_cross_entropy(const CrossEntropyArgs&) const override { later(); }
  void softmax_cross_entropy_gradient(const CrossEntropyGradientArgs&) const override { later(); }
  void softmax_gradient(DType, std::int64_t, std::int64_t, const void*, const void*,
                        void*) const override {
    later();
  }
  void dropout(DType, std::int64_t, std::int64_t, DropoutKey, double, const void*,
               void*) const override {
    later();
  }
  void optimizer_step(const OptimizerStep&) const override { later(); }

 private:
  std::string name_;
  cudnn::Context& context_;
  int ordinal_;
};

}  // namespace

const Device& gpu_device(int ordinal) {
  cudnn::Context::of(ordinal);
  static constinit std::array<std::atomic<const GpuDevice*>, 64> known{};
  auto& slot = known[static_cast<std::size_t>(ordinal)];
  if (const GpuDevice* found = slot.load(std::memory_order_acquire)) return *found;
  const auto* mine = new GpuDevice(ordinal);
  const GpuDevice* found = nullptr;
  if (slot.compare_exchange_strong(found, mine, std::memory_order_acq_rel)) return *mine;
  delete mine;
  return *found;
}

}  // namespace openrnn
