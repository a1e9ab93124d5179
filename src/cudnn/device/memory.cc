#include <bit>

#include "base/message.h"
#include "cudnn/device/decision.h"
#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"
#include "cudnn/gpu/event.h"
#include "cudnn/gpu/staging.h"

namespace openrnn::cudnn {
namespace {

// The largest word, up to 16 bytes, that divides all of these.
int word_of(const BlockCopy& copy) {
  const auto all = reinterpret_cast<std::uintptr_t>(copy.from) |
                   reinterpret_cast<std::uintptr_t>(copy.to) | copy.from_stride | copy.to_stride |
                   copy.bytes | 16u;
  return 1 << std::countr_zero(all);
}

bool is_dense(const BlockCopy& copy) {
  return copy.count == 1 || (copy.from_stride == copy.bytes && copy.to_stride == copy.bytes);
}

}  // namespace

GpuDevice::GpuDevice(Context& context, const Engine* engine)
    : context_(context),
      engine_(engine),
      name_(message("gpu:", context.ordinal())),
      readings_(context) {}

std::shared_ptr<void> GpuDevice::allocate(std::size_t bytes) const {
  return context_.allocate(bytes);
}

void GpuDevice::zero(void* to, std::size_t bytes) const {
  const Context::Current current(context_);
  context_.zero(to, bytes);
}

void GpuDevice::copy(const BlockCopy& copy) const {
  if (copy.count <= 0 || copy.bytes == 0) return;
  const Context::Current current(context_);
  if (is_dense(copy)) {
    context_.copy(copy.to, copy.from, static_cast<std::size_t>(copy.count) * copy.bytes);
  } else {
    copy_blocks(copy, nullptr);
  }
}

void GpuDevice::copy_if(const StepDecision* decision, std::size_t bytes, const void* from,
                        void* to) const {
  if (bytes == 0) return;
  const Context::Current current(context_);
  const auto size = static_cast<std::int64_t>(bytes);
  launch(context_, "openrnn_copy_if", for_elements(size / 4 + size % 4),
         gpu::CopyIfArguments{size, decision_of(decision), from, to});
}

void GpuDevice::copy_blocks(const BlockCopy& copy, const std::int32_t* indices) const {
  const int word = word_of(copy);
  const auto words = [word](std::size_t bytes) {
    return static_cast<std::int64_t>(bytes) / word;  // NOLINT(*DivideZero): word is at least 1
  };
  launch(context_, "openrnn_copy", for_cells(copy.count, words(copy.bytes)),
         gpu::CopyArguments{.count = copy.count,
                            .words = words(copy.bytes),
                            .word_bytes = word,
                            .from = copy.from,
                            .from_stride = words(copy.from_stride),
                            .indices = indices,
                            .to = copy.to,
                            .to_stride = words(copy.to_stride)});
}

void GpuDevice::upload(void* to, const void* host, std::size_t bytes) const {
  if (bytes == 0) return;
  const Context::Current current(context_);
  context_.staging().upload(context_.stream(), to, host, bytes);
}

std::shared_ptr<void> GpuDevice::bring(const void* host, std::size_t bytes) const {
  const Context::Current current(context_);
  return context_.bring(host, bytes);
}

void GpuDevice::download(void* host, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  const Context::Current current(context_);
  context_.staging().download(host, from, bytes);
}

std::unique_ptr<Reading> GpuDevice::read_later(const void* from, std::size_t bytes) const {
  const Context::Current current(context_);
  return readings_.begin(from, bytes);
}

std::uintptr_t GpuDevice::stream() const {
  return reinterpret_cast<std::uintptr_t>(context_.stream());
}

void GpuDevice::go_before(std::uintptr_t stream) const {
  const Context::Current current(context_);
  Event done;
  done.record(context_);
  auto* const theirs = reinterpret_cast<CUstream>(stream);  // NOLINT(*no-int-to-ptr): DLPack's form
  check(libraries().driver.stream_wait(theirs, done.handle(), 0), "cuStreamWaitEvent");
}

void GpuDevice::wait() const {
  const Context::Current current(context_);
  context_.wait();
}

}  // namespace openrnn::cudnn
