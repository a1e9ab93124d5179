#include "cudnn/load/driver_api.h"

#include "cudnn/load/library.h"

namespace openrnn::cudnn {

// The headers rename functions whose meaning changed; the library has the names with a number.
std::string open_driver(DriverApi& api) {
  Library lib("libcuda.so.1", {});
  lib.find("cuInit", api.init);
  lib.find("cuDriverGetVersion", api.driver_version);
  lib.find("cuGetErrorName", api.error_name);
  lib.find("cuGetErrorString", api.error_string);

  lib.find("cuDeviceGetCount", api.device_count);
  lib.find("cuDeviceGet", api.device_get);
  lib.find("cuDeviceGetName", api.device_name);
  lib.find("cuDeviceGetAttribute", api.device_attribute);
  lib.find("cuDevicePrimaryCtxRetain", api.primary_context_retain);
  lib.find("cuCtxPushCurrent_v2", api.context_push);
  lib.find("cuCtxPopCurrent_v2", api.context_pop);

  lib.find("cuMemAlloc_v2", api.memory_alloc);
  lib.find("cuMemFree_v2", api.memory_free);
  lib.find("cuMemGetInfo_v2", api.memory_info);
  lib.find("cuMemHostAlloc", api.host_alloc);
  lib.find("cuMemFreeHost", api.host_free);
  lib.find("cuPointerGetAttribute", api.pointer_attribute);

  lib.find("cuMemcpyHtoDAsync_v2", api.copy_in);
  lib.find("cuMemcpyDtoHAsync_v2", api.copy_out);
  lib.find("cuMemcpyDtoDAsync_v2", api.copy);
  lib.find("cuMemcpy2DAsync_v2", api.copy_2d);
  lib.find("cuMemsetD8Async", api.fill);

  lib.find("cuStreamCreate", api.stream_create);
  lib.find("cuStreamDestroy_v2", api.stream_destroy);
  lib.find("cuStreamSynchronize", api.stream_synchronize);
  lib.find("cuStreamWaitEvent", api.stream_wait);
  lib.find("cuEventCreate", api.event_create);
  lib.find("cuEventDestroy_v2", api.event_destroy);
  lib.find("cuEventRecord", api.event_record);
  lib.find("cuEventQuery", api.event_query);
  lib.find("cuEventSynchronize", api.event_synchronize);
  // The first version of this function has the same arguments and is in every driver.
  lib.find("cuEventElapsedTime", api.event_elapsed);

  lib.find("cuStreamBeginCapture_v2", api.stream_begin_capture);
  lib.find("cuStreamEndCapture", api.stream_end_capture);
  lib.find("cuGraphInstantiateWithFlags", api.graph_instantiate);
  lib.find("cuGraphDestroy", api.graph_destroy);
  lib.find("cuGraphExecDestroy", api.graph_exec_destroy);
  lib.find("cuGraphLaunch", api.graph_launch);

  lib.find("cuModuleLoadData", api.module_load);
  lib.find("cuModuleGetFunction", api.module_function);
  lib.find("cuLaunchKernel", api.launch);
  return lib.problem();
}

}  // namespace openrnn::cudnn
