#include "cudnn/gpu/context.h"

#include <array>
#include <atomic>

#include "base/message.h"
#include "cudnn/gpu/arena.h"
#include "cudnn/gpu/busy_clock.h"
#include "cudnn/gpu/detour.h"
#include "cudnn/gpu/fatbins.h"
#include "cudnn/gpu/staging.h"
#include "cudnn/gpu/uploads.h"
#include "openrnn/base.h"

namespace openrnn::cudnn {
namespace {

// The oldest architecture that CUDA 13 and the kernels support.
constexpr int kOldestCapability = 75;

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(libraries().driver.device_attribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

int capability_of(CUdevice device) {
  return 10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
         attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

std::string name_of(CUdevice device) {
  std::array<char, 256> name{};
  check(libraries().driver.device_name(name.data(), name.size() - 1, device), "cuDeviceGetName");
  return name.data();
}

}  // namespace

Context::Current::Current(const Context& context)
    : clock_(context.clock_.load(std::memory_order_acquire)) {
  if (forked()) {
    throw EngineError(message("[gpu:", context.ordinal_, "] cannot be used: ", forked_text()));
  }
  check(libraries().driver.context_push(context.context_), "cuCtxPushCurrent");
  if (clock_) clock_->begin_call();
}

Context::Current::~Current() {
  if (clock_) clock_->end_call();
  CUcontext popped = nullptr;
  libraries().driver.context_pop(&popped);
}

std::string Context::missing(int ordinal) {
  if (forked()) return forked_text();
  const Libraries& all = libraries();
  if (!all.missing.empty()) return all.missing;
  if (ordinal < 0 || ordinal >= all.gpus || ordinal >= kMostGpus) {
    return message("there is no GPU ", ordinal, "; the driver shows ", all.gpus,
                   ", numbered from 0");
  }
  CUdevice device = 0;
  check(all.driver.device_get(&device, ordinal), "cuDeviceGet");
  if (const int found = capability_of(device); found < kOldestCapability) {
    return message("GPU ", ordinal, " (", name_of(device), ") is of compute capability ",
                   found / 10, ".", found % 10, ", expected 7.5 or newer");
  }
  return {};
}

std::string Context::gpu_name(int ordinal) {
  CUdevice device = 0;
  check(libraries().driver.device_get(&device, ordinal), "cuDeviceGet");
  return name_of(device);
}

// Published as a whole and never destroyed; of two made at once, one stays and the other is leaked
// (one stream).
Context& Context::of(int ordinal) {
  static constinit std::array<std::atomic<Context*>, kMostGpus> known{};
  if (ordinal >= 0 && ordinal < kMostGpus) {
    Context* found = known[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire);
    if (found) return *found;
  }
  if (const std::string reason = missing(ordinal); !reason.empty()) {
    throw EngineError(message("[device] 'gpu:", ordinal, "' cannot be used: ", reason));
  }
  auto* mine = new Context(ordinal);
  Context* found = nullptr;
  const bool first = known[static_cast<std::size_t>(ordinal)].compare_exchange_strong(
      found, mine, std::memory_order_acq_rel);
  return first ? *mine : *found;
}

Context::Context(int ordinal)
    : ordinal_(ordinal),
      pool_(*this),
      staging_(std::make_unique<Staging>(*this)),
      uploads_(std::make_unique<Uploads>(*this)) {
  const DriverApi& driver = libraries().driver;
  check(driver.device_get(&device_, ordinal), "cuDeviceGet");
  check(driver.primary_context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  capability_ = capability_of(device_);
  multiprocessors_ = attribute(device_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const Current current(*this);
  check(driver.stream_create(&stream_, CU_STREAM_DEFAULT), "cuStreamCreate");
}

CUstream Context::stream() const noexcept {
  const Detour* detour = Detour::of(*this);
  return detour && detour->stream() ? detour->stream() : stream_;
}

std::shared_ptr<void> Context::allocate(std::size_t bytes) {
  if (const Detour* detour = Detour::of(*this)) return detour->memory().allocate(bytes);
  try {
    return pool_.allocate(bytes);
  } catch (const GpuError& error) {
    if (error.fault() != GpuFault::kNoRoom) throw;
    const Spare spare = spare_.load(std::memory_order_acquire);
    const bool others = spare && spare(*this);
    if (!uploads_->release_idle() && !others) throw;
  }
  return pool_.allocate(bytes);
}

std::shared_ptr<void> Context::bring(const void* host, std::size_t bytes) {
  if (bytes > 0 && !Detour::of(*this)) return uploads_->bring(host, bytes);
  // Blocks of an arena keep their addresses.
  std::shared_ptr<void> memory = allocate(bytes);
  staging_->upload(stream(), memory.get(), host, bytes);
  return memory;
}

CUfunction Context::kernel(const char* name) {
  const DriverApi& driver = libraries().driver;
  const std::lock_guard lock(mutex_);
  if (const auto found = kernels_.find(name); found != kernels_.end()) return found->second;
  if (modules_.empty()) {
    for (const void* image : fatbins()) {
      CUmodule module = nullptr;
      check(driver.module_load(&module, image), "cuModuleLoadData");
      modules_.push_back(module);
    }
  }
  for (const CUmodule module : modules_) {
    CUfunction function = nullptr;
    const CUresult found = driver.module_function(&function, module, name);
    if (found == CUDA_ERROR_NOT_FOUND) continue;
    check(found, "cuModuleGetFunction");
    return kernels_[name] = function;
  }
  throw EngineError(message("[gpu:", ordinal_, "] the kernel '", name,
                            "' is not in this build, expected one of src/cudnn/kernels"));
}

void Context::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check(libraries().driver.copy(device_address(to), device_address(from), bytes, stream()),
        "cuMemcpyDtoDAsync");
}

// The driver has read pageable host memory when it returns.
void Context::copy_in(CUstream stream, void* to, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  check(libraries().driver.copy_in(device_address(to), host, bytes, stream), "cuMemcpyHtoDAsync");
}

void Context::zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  check(libraries().driver.fill(device_address(to), 0, bytes, stream()), "cuMemsetD8Async");
}

void Context::copy_out_later(void* pinned, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check(libraries().driver.copy_out(pinned, device_address(from), bytes, stream()),
        "cuMemcpyDtoHAsync");
}

void Context::copy_out(void* host, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  copy_out_later(host, from, bytes);
  wait();
}

void Context::wait() {
  check(libraries().driver.stream_synchronize(stream()), "cuStreamSynchronize");
}

}  // namespace openrnn::cudnn
