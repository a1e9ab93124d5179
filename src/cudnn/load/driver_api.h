// The functions of NVIDIA's driver that are used. Types come from its header, addresses from the
// library that is opened.
#pragma once

#include <cuda.h>

#include <string>

namespace openrnn::cudnn {

struct DriverApi {
  decltype(&cuInit) init = nullptr;
  decltype(&cuDriverGetVersion) driver_version = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;

  decltype(&cuDeviceGetCount) device_count = nullptr;
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDeviceGetName) device_name = nullptr;
  decltype(&cuDeviceGetAttribute) device_attribute = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) primary_context_retain = nullptr;
  decltype(&cuCtxPushCurrent) context_push = nullptr;
  decltype(&cuCtxPopCurrent) context_pop = nullptr;

  decltype(&cuMemAlloc) memory_alloc = nullptr;
  decltype(&cuMemFree) memory_free = nullptr;
  decltype(&cuMemGetInfo) memory_info = nullptr;
  decltype(&cuMemHostAlloc) host_alloc = nullptr;
  decltype(&cuMemFreeHost) host_free = nullptr;
  decltype(&cuPointerGetAttribute) pointer_attribute = nullptr;

  decltype(&cuMemcpyHtoDAsync) copy_in = nullptr;
  decltype(&cuMemcpyDtoHAsync) copy_out = nullptr;
  decltype(&cuMemcpyDtoDAsync) copy = nullptr;
  decltype(&cuMemcpy2DAsync) copy_2d = nullptr;
  decltype(&cuMemsetD8Async) fill = nullptr;

  decltype(&cuStreamCreate) stream_create = nullptr;
  decltype(&cuStreamDestroy) stream_destroy = nullptr;
  decltype(&cuStreamSynchronize) stream_synchronize = nullptr;
  decltype(&cuStreamWaitEvent) stream_wait = nullptr;
  decltype(&cuEventCreate) event_create = nullptr;
  decltype(&cuEventDestroy) event_destroy = nullptr;
  decltype(&cuEventRecord) event_record = nullptr;
  decltype(&cuEventQuery) event_query = nullptr;
  decltype(&cuEventSynchronize) event_synchronize = nullptr;
  decltype(&cuEventElapsedTime) event_elapsed = nullptr;

  decltype(&cuStreamBeginCapture) stream_begin_capture = nullptr;
  decltype(&cuStreamEndCapture) stream_end_capture = nullptr;
  decltype(&cuGraphInstantiate) graph_instantiate = nullptr;
  decltype(&cuGraphDestroy) graph_destroy = nullptr;
  decltype(&cuGraphExecDestroy) graph_exec_destroy = nullptr;
  decltype(&cuGraphLaunch) graph_launch = nullptr;

  decltype(&cuModuleLoadData) module_load = nullptr;
  decltype(&cuModuleGetFunction) module_function = nullptr;
  decltype(&cuLaunchKernel) launch = nullptr;
};

/// Opens libcuda.so.1. What is wrong; empty when nothing is.
std::string open_driver(DriverApi& api);

}  // namespace openrnn::cudnn
