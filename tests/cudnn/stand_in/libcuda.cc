// The driver's functions over the pretended GPU.
#include <cuda.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "cudnn/stand_in/kernels/kernels_on_cpu.h"
#include "cudnn/stand_in/machine.h"

namespace {

using namespace openrnn::stand_in;  // NOLINT: this file is that namespace's face

CUresult whole() { return broken().empty() ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS; }

// What a call answers when the machine is broken or no context is current.
CUresult ready(const char* call) {
  if (!has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  return is_whole(call) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

// The same for what a capture does not allow.
CUresult ready_outside_of_capture(const char* call) {
  const CUresult answer = ready(call);
  if (!captures() || answer != CUDA_SUCCESS) return answer;
  spoil_capture();
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

Stream number_of(CUstream stream) { return reinterpret_cast<Stream>(stream); }

template <class Work>
CUresult enqueue_checked(const char* call, CUstream stream, Work work) {
  if (const CUresult answer = ready(call); answer != CUDA_SUCCESS) return answer;
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
  std::shared_ptr<Mark> mark;  // of its last record
};

struct Function {
  std::string name;
};

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
  *name = error == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
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
  push_context();
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuCtxPopCurrent(CUcontext*) {
  return pop_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

STAND_IN_API CUresult cuMemAlloc(CUdeviceptr* memory, std::size_t bytes) {
  if (const CUresult answer = ready_outside_of_capture("cuMemAlloc"); answer != CUDA_SUCCESS) {
    return answer;
  }
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *memory = allocate(bytes);
  return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
STAND_IN_API CUresult cuMemFree(CUdeviceptr memory) {
  if (const CUresult answer = ready_outside_of_capture("cuMemFree"); answer != CUDA_SUCCESS) {
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
  if (const CUresult answer = ready_outside_of_capture("cuMemHostAlloc"); answer != CUDA_SUCCESS) {
    return answer;
  }
  *memory = ::operator new(bytes, std::align_val_t(256));
  std::memset(*memory, 0xFF, bytes);
  const std::lock_guard lock(pinned().mutex);
  pinned().blocks[static_cast<const char*>(*memory)] = bytes;
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuMemFreeHost(void* memory) {
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
  // Of pageable memory a capture would keep the address, and the driver refuses it.
  if (captures()) return ready_outside_of_capture("cuMemcpyHtoDAsync");
  const auto* start = static_cast<const char*>(from);
  auto now = std::make_shared<std::vector<char>>(start, start + bytes);
  return enqueue_checked("cuMemcpyHtoDAsync", stream,
                         [=] { std::memcpy(host_of(to, bytes), now->data(), bytes); });
}
STAND_IN_API CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes,
                                        CUstream stream) {
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

STAND_IN_API CUresult cuStreamCreate(CUstream* stream, unsigned) {
  static std::atomic<std::uint64_t> made{0};
  // NOLINTNEXTLINE(*no-int-to-ptr): a handle that points to nothing
  *stream = reinterpret_cast<CUstream>(0x1000 + ++made);
  return ready("cuStreamCreate");
}
STAND_IN_API CUresult cuStreamSynchronize(CUstream stream) {
  const CUresult answer = ready_outside_of_capture("cuStreamSynchronize");
  if (answer != CUDA_SUCCESS) return answer;
  synchronize(number_of(stream));
  return whole();
}
STAND_IN_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const Event& which = *reinterpret_cast<Event*>(event);
  const CUresult answer = ready("cuStreamWaitEvent");
  if (answer == CUDA_SUCCESS && which.mark) wait_for(number_of(stream), which.mark);
  return answer;
}
STAND_IN_API CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  if (captures()) return CUDA_ERROR_ILLEGAL_STATE;
  const CUresult answer = ready("cuStreamBeginCapture");
  if (answer == CUDA_SUCCESS) begin_capture(number_of(stream));
  return answer;
}
STAND_IN_API CUresult cuStreamEndCapture(CUstream, CUgraph* graph) {
  if (!captures()) return CUDA_ERROR_ILLEGAL_STATE;
  auto work = std::make_unique<std::vector<std::function<void()>>>();
  if (!end_capture(*work)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = reinterpret_cast<CUgraph>(work.release());
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
  if (answer != CUDA_SUCCESS || captures()) return answer;
  reinterpret_cast<Event*>(event)->mark = record(number_of(stream));
  return whole();
}
STAND_IN_API CUresult cuEventQuery(CUevent event) {
  const CUresult answer = ready_outside_of_capture("cuEventQuery");
  const auto& mark = reinterpret_cast<Event*>(event)->mark;
  return answer == CUDA_SUCCESS && mark && !mark->passed ? CUDA_ERROR_NOT_READY : answer;
}
STAND_IN_API CUresult cuEventSynchronize(CUevent event) {
  const CUresult answer = ready_outside_of_capture("cuEventSynchronize");
  if (answer != CUDA_SUCCESS) return answer;
  synchronize(reinterpret_cast<Event*>(event)->mark);
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
  Launch launch{{gx, gy, gz}, {bx, by, bz}, shared, arguments, translate};
  count_call(reinterpret_cast<Function*>(function)->name);
  try {
    return enqueue_checked("cuLaunchKernel", stream,
                           prepare_kernel(reinterpret_cast<Function*>(function)->name, launch));
  } catch (const std::exception&) {
    return CUDA_ERROR_INVALID_VALUE;
  }
}

// No functions of the driver: what tests ask.
STAND_IN_API long stand_in_waits() { return waits(); }
STAND_IN_API long stand_in_idle_waits() { return idle_waits(); }
STAND_IN_API long stand_in_calls(const char* name) { return calls_of(name); }

}  // extern "C"
