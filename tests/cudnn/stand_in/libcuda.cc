// The driver's functions of the stand-in GPU.
#include "cudnn/stand_in/libcuda.h"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

#include "cudnn/stand_in/kernels/kernels_on_cpu.h"

namespace {

using namespace openrnn::stand_in;  // NOLINT: this file is that namespace's face

template <class Function>
CUresult enqueue_checked(const char* call, CUstream stream, Function work) {
  if (const CUresult answer = ready(call); answer != CUDA_SUCCESS) return answer;
  if (const auto answer = may_enqueue(number_of(stream)); answer != CaptureAnswer::kAllowed) {
    return result_of(answer);
  }
  enqueue(number_of(stream), std::move(work));
  return whole();
}

// Memory of the host that was pinned: copies read it when they run.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, std::size_t> blocks;
  bool holds(const void* address) {
    const std::lock_guard lock(mutex);
    auto after = blocks.upper_bound(static_cast<const char*>(address));
    if (after == blocks.begin()) return false;
    --after;
    return static_cast<const char*>(address) < after->first + after->second;
  }
};
Pinned& pinned() {
  static auto* all = new Pinned;
  return *all;
}

struct Event {
  std::shared_ptr<Mark> mark;         // of its last record
  std::optional<Stream> inside = {};  // of a capture that it was recorded in
};

// A copy between the device and memory of the host that is not pinned: the driver would have to
// wait, and a graph would keep the address.
CUresult refuse_pageable(CUstream stream) {
  spoil_capture(number_of(stream));
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// What waiting for an event, or asking for it, answers.
CUresult ready_for(const char* call, const Event& event) {
  if (!event.inside) return ready_outside_of_captures(call);
  spoil_capture(*event.inside);
  return CUDA_ERROR_CAPTURED_EVENT;
}

struct Function {
  std::string name;
};

// The device's addresses among a launch's arguments, while it is prepared.
thread_local std::vector<std::uint64_t> addresses;

std::uint64_t noted(std::uint64_t word) {
  const std::uint64_t translated = translate(word);
  if (translated != word) addresses.push_back(word);
  return translated;
}

// What a kernel may use when it runs, for a graph long after it was prepared.
void use_addresses(const std::vector<std::uint64_t>& all) {
  for (const std::uint64_t each : all) {
    if (!contains(each, 1)) throw std::runtime_error("a kernel's memory was given back");
    host_of(each, 1);
  }
}

int gpus() { return static_cast<int>(setting("STAND_IN_GPUS", 1)); }

void copy_rows(const CUDA_MEMCPY2D& c, const char* from, char* to) {
  for (std::size_t row = 0; row < c.Height; ++row) {
    std::memcpy(to + row * c.dstPitch, from + row * c.srcPitch, c.WidthInBytes);
  }
}

}  // namespace

extern "C" {

STAND_IN_API CUresult cuInit(unsigned) {
  return static_cast<CUresult>(setting("STAND_IN_INIT", gpus() > 0 ? 0 : CUDA_ERROR_NO_DEVICE));
}
STAND_IN_API CUresult cuDriverGetVersion(int* version) {
  *version = static_cast<int>(setting("STAND_IN_DRIVER", 13000));
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY                ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS            ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
          : error == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
                                                           : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error of the stand-in";
  return CUDA_SUCCESS;
}

STAND_IN_API CUresult cuDeviceGetCount(int* count) {
  *count = gpus();
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= gpus()) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "Stand-in GPU", static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  const long capability = setting("STAND_IN_CAPABILITY", 90);
  *value = 2;  // multiprocessors, and whatever else is asked
  if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = int(capability / 10);
  if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) *value = int(capability % 10);
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  // NOLINTNEXTLINE(*no-int-to-ptr): a handle that points to nothing
  *context = reinterpret_cast<CUcontext>(std::uint64_t(device) + 1);
  return static_cast<CUresult>(setting("STAND_IN_CONTEXT", CUDA_SUCCESS));
}
STAND_IN_API CUresult cuCtxPushCurrent(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  push_context(static_cast<int>(reinterpret_cast<std::uint64_t>(context)) - 1);
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuCtxPopCurrent(CUcontext*) {
  return pop_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

STAND_IN_API CUresult cuMemAlloc(CUdeviceptr* memory, std::size_t bytes) {
  if (const CUresult answer = ready_outside_of_captures("cuMemAlloc"); answer != CUDA_SUCCESS) {
    return answer;
  }
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *memory = allocate(bytes);
  return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
STAND_IN_API CUresult cuMemFree(CUdeviceptr memory) {
  if (const CUresult answer = ready_outside_of_captures("cuMemFree"); answer != CUDA_SUCCESS) {
    return answer;
  }
  synchronize();
  bool known = false;
  enqueue(0, [&] { known = release(memory); });
  synchronize();
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STAND_IN_API CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  memory_info(free, total);
  return ready("cuMemGetInfo");
}
STAND_IN_API CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (const CUresult answer = ready_outside_of_captures("cuMemHostAlloc"); answer != CUDA_SUCCESS) {
    return answer;
  }
  *memory = ::operator new(bytes, std::align_val_t(256));
  std::memset(*memory, 0xFF, bytes);
  const std::lock_guard lock(pinned().mutex);
  pinned().blocks[static_cast<const char*>(*memory)] = bytes;
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuMemFreeHost(void* memory) {
  if (const auto answer = may_call(); answer != CaptureAnswer::kAllowed) return result_of(answer);
  synchronize();
  const std::lock_guard lock(pinned().mutex);
  if (pinned().blocks.erase(static_cast<const char*>(memory)) == 0) return CUDA_ERROR_INVALID_VALUE;
  ::operator delete(memory, std::align_val_t(256));
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuPointerGetAttribute(void* value, CUpointer_attribute which,
                                            CUdeviceptr pointer) {
  if (!contains(pointer, 1)) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(value) = 0;
  if (which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
    *static_cast<unsigned*>(value) = CU_MEMORYTYPE_DEVICE;
  }
  return CUDA_SUCCESS;
}

STAND_IN_API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes,
                                        CUstream stream) {
  if (pinned().holds(from)) {
    return enqueue_checked("cuMemcpyHtoDAsync", stream,
                           [=] { std::memcpy(host_of(to, bytes), from, bytes); });
  }
  if (captures(number_of(stream))) return refuse_pageable(stream);
  const auto* start = static_cast<const char*>(from);
  auto now = std::make_shared<std::vector<char>>(start, start + bytes);
  return enqueue_checked("cuMemcpyHtoDAsync", stream,
                         [=] { std::memcpy(host_of(to, bytes), now->data(), bytes); });
}
STAND_IN_API CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes,
                                        CUstream stream) {
  if (captures(number_of(stream)) && !pinned().holds(to)) return refuse_pageable(stream);
  return enqueue_checked("cuMemcpyDtoHAsync", stream,
                         [=] { std::memcpy(to, host_of(from, bytes), bytes); });
}
STAND_IN_API CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                        CUstream stream) {
  return enqueue_checked("cuMemcpyDtoDAsync", stream,
                         [=] { std::memmove(host_of(to, bytes), host_of(from, bytes), bytes); });
}
STAND_IN_API CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* given, CUstream stream) {
  const CUDA_MEMCPY2D c = *given;
  if (c.srcMemoryType != CU_MEMORYTYPE_DEVICE || c.dstMemoryType != CU_MEMORYTYPE_DEVICE ||
      c.srcPitch < c.WidthInBytes || c.dstPitch < c.WidthInBytes || c.srcXInBytes || c.srcY ||
      c.dstXInBytes || c.dstY) {
    return CUDA_ERROR_INVALID_VALUE;  // what the stand-in does not do
  }
  return enqueue_checked("cuMemcpy2DAsync", stream, [c] {
    if (c.Height == 0 || c.WidthInBytes == 0) return;
    const std::size_t from = (c.Height - 1) * c.srcPitch + c.WidthInBytes;
    const std::size_t to = (c.Height - 1) * c.dstPitch + c.WidthInBytes;
    copy_rows(c, static_cast<const char*>(host_of(c.srcDevice, from)),
              static_cast<char*>(host_of(c.dstDevice, to)));
  });
}
STAND_IN_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes,
                                      CUstream stream) {
  return enqueue_checked("cuMemsetD8Async", stream,
                         [=] { std::memset(host_of(to, bytes), value, bytes); });
}

STAND_IN_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  static std::atomic<std::uint64_t> made{0};
  // NOLINTNEXTLINE(*no-int-to-ptr): a handle that points to nothing
  *stream = reinterpret_cast<CUstream>(0x1000 + ++made);
  if ((flags & CU_STREAM_NON_BLOCKING) == 0) note_blocking(number_of(*stream));
  return ready("cuStreamCreate");
}
STAND_IN_API CUresult cuStreamDestroy(CUstream) { return whole(); }
STAND_IN_API CUresult cuStreamSynchronize(CUstream stream) {
  const CUresult answer = ready_to_wait("cuStreamSynchronize", stream);
  if (answer != CUDA_SUCCESS) return answer;
  synchronize(number_of(stream));
  return whole();
}
// Inside of a capture nothing of the outside is waited for, and the other way round: the stand-in
// does not let a capture grow to further streams.
STAND_IN_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const Event& which = *reinterpret_cast<Event*>(event);
  const CUresult answer = ready("cuStreamWaitEvent");
  if (answer != CUDA_SUCCESS) return answer;
  const Stream own = number_of(stream);
  if (which.inside == own) return CUDA_SUCCESS;
  if (captures(own) || which.inside) {
    spoil_capture(which.inside.value_or(own));
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (which.mark) wait_for(own, which.mark);
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new Event);
  return ready("cuEventCreate");
}
STAND_IN_API CUresult cuEventDestroy(CUevent event) {
  delete reinterpret_cast<Event*>(event);
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  const CUresult answer = ready("cuEventRecord");
  if (answer != CUDA_SUCCESS) return answer;
  Event& which = *reinterpret_cast<Event*>(event);
  which.inside.reset();
  if (captures(number_of(stream))) {
    which.inside = number_of(stream);
  } else {
    which.mark = record(number_of(stream));
  }
  return whole();
}
STAND_IN_API CUresult cuEventQuery(CUevent event) {
  const Event& which = *reinterpret_cast<Event*>(event);
  const CUresult answer = ready_for("cuEventQuery", which);
  const bool waits = answer == CUDA_SUCCESS && which.mark && !has_passed(*which.mark);
  return waits ? CUDA_ERROR_NOT_READY : answer;
}
STAND_IN_API CUresult cuEventSynchronize(CUevent event) {
  const Event& which = *reinterpret_cast<Event*>(event);
  const CUresult answer = ready_for("cuEventSynchronize", which);
  if (answer != CUDA_SUCCESS) return answer;
  synchronize(which.mark);
  return whole();
}
// Under its first name, which has the same arguments.
#undef cuEventElapsedTime
STAND_IN_API CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  const auto& start = reinterpret_cast<Event*>(from)->mark;
  const auto& end = reinterpret_cast<Event*>(to)->mark;
  if (!start || !end || !start->passed || !end->passed) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(end->time - start->time);
  return ready("cuEventElapsedTime");
}

STAND_IN_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (const auto answer = may_call(); answer != CaptureAnswer::kAllowed) return result_of(answer);
  if (magic != 0xBA55ED50u) return CUDA_ERROR_INVALID_IMAGE;  // how a fat binary begins
  *module = reinterpret_cast<CUmodule>(const_cast<void*>(image));
  return ready("cuModuleLoadData");
}
STAND_IN_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  if (!has_kernel(name)) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(new Function{name});
  return ready("cuModuleGetFunction");
}
STAND_IN_API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     CUstream stream, void** arguments, void**) {
  const Launch launch{{gx, gy, gz}, {bx, by, bz}, shared, arguments, noted};
  count_call(reinterpret_cast<Function*>(function)->name);
  addresses.clear();
  try {
    return enqueue_checked(
        "cuLaunchKernel", stream,
        [run = prepare_kernel(reinterpret_cast<Function*>(function)->name, launch),
         all = addresses] {
          use_addresses(all);
          run();
        });
  } catch (const std::exception&) {
    return CUDA_ERROR_INVALID_VALUE;
  }
}

// No functions of the driver: what tests ask.
STAND_IN_API long stand_in_waits() { return waits(); }
STAND_IN_API long stand_in_idle_waits() { return idle_waits(); }
STAND_IN_API long stand_in_calls(const char* name) { return calls_of(name); }

}  // extern "C"
