// cuDNN's functions about handles and descriptors; as strict as cuDNN 9.19 was found to be where it
// can be asked without a GPU, and as its documentation says elsewhere.
#include "cudnn/stand_in/libcudnn.h"

#include <cudnn.h>

#include <cstring>

#include "cudnn/stand_in/machine.h"
#include "cudnn/stand_in/rnn_on_cpu.h"

namespace openrnn::stand_in {
namespace {

int& last_status() {
  static thread_local int status = 0;
  return status;
}

bool known_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE;
}

bool sorted_and_full(int time, int batch, const int* lengths) {
  for (int b = 0; b < batch; ++b) {
    if (lengths[b] < 1 || lengths[b] > (b ? lengths[b - 1] : time)) return false;
  }
  return lengths[0] == time;
}

}  // namespace

cudnnStatus_t answer(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) last_status() = static_cast<int>(status);
  return status;
}

}  // namespace openrnn::stand_in

using namespace openrnn::stand_in;  // NOLINT: this file is that namespace's face

extern "C" {

STAND_IN_API std::size_t cudnnGetVersion() {
  return static_cast<std::size_t>(setting("STAND_IN_CUDNN", 91900));
}
STAND_IN_API const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (static_cast<int>(status) / 1000) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case 2:
      return "CUDNN_STATUS_BAD_PARAM";
    case 3:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
STAND_IN_API void cudnnGetLastErrorString(char* text, std::size_t size) {
  std::strncpy(text, "words of the stand-in", size);
}
STAND_IN_API cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (!has_context() || !is_whole("cudnnCreate")) return answer(CUDNN_STATUS_NOT_INITIALIZED);
  // It allocates.
  if (may_call() != CaptureAnswer::kAllowed) return answer(CUDNN_STATUS_INTERNAL_ERROR);
  *handle = reinterpret_cast<cudnnHandle_t>(new Stream(0));
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete inside<Stream>(handle);
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN_API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!handle) return answer(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *inside<Stream>(handle) = reinterpret_cast<Stream>(stream);
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN_API cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) {
  return make<TensorDescriptor>(d);
}
STAND_IN_API cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) {
  return destroy<TensorDescriptor>(d);
}
STAND_IN_API cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d,
                                                      cudnnDataType_t type, int count,
                                                      const int* dims, const int* strides) {
  if (!d || !known_type(type) || count < 3) return answer(CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < count; ++i) {
    if (dims[i] < 1 || strides[i] < 1) return answer(CUDNN_STATUS_BAD_PARAM);
  }
  std::int64_t elements = 1;
  for (int i = 0; i < count; ++i) elements *= dims[i];
  if (elements >= std::int64_t{1} << 31) return answer(CUDNN_STATUS_NOT_SUPPORTED);
  *inside<TensorDescriptor>(d) = {type, {dims, dims + count}, {strides, strides + count}};
  return CUDNN_STATUS_SUCCESS;
}
STAND_IN_API cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t d, int wanted,
                                                      cudnnDataType_t* type, int* count, int* dims,
                                                      int* strides) {
  const TensorDescriptor& tensor = *inside<TensorDescriptor>(d);
  *type = tensor.type;
  *count = static_cast<int>(tensor.dims.size());
  for (int i = 0; i < std::min(wanted, *count); ++i) {
    dims[i] = tensor.dims[static_cast<std::size_t>(i)];
    strides[i] = tensor.strides[static_cast<std::size_t>(i)];
  }
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN_API cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* d) {
  return make<DropoutDescriptor>(d);
}
STAND_IN_API cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t d) {
  return destroy<DropoutDescriptor>(d);
}
STAND_IN_API cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, std::size_t* bytes) {
  *bytes = 1024;
  return answer(handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM);
}
STAND_IN_API cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t d,
                                                     cudnnHandle_t handle, float rate, void* states,
                                                     std::size_t bytes, unsigned long long seed) {
  if (!d || !handle || !(rate >= 0.0F && rate <= 1.0F)) return answer(CUDNN_STATUS_BAD_PARAM);
  if (rate > 0.0F && (!states || bytes < 1024)) return answer(CUDNN_STATUS_BAD_PARAM);
  // A generator is set up by a kernel.
  if (states && !is_whole("cudnnSetDropoutDescriptor")) {
    return answer(CUDNN_STATUS_EXECUTION_FAILED);
  }
  // The kernel is no part of a graph: a graph would set the generator up again each time.
  if (states && captures(*inside<Stream>(handle))) {
    spoil_capture(*inside<Stream>(handle));
    return answer(CUDNN_STATUS_EXECUTION_FAILED);
  }
  if (states && !contains(reinterpret_cast<std::uint64_t>(states), bytes)) {
    return answer(CUDNN_STATUS_EXECUTION_FAILED);
  }
  *inside<DropoutDescriptor>(d) = {rate, true, states};
  if (states) enqueue(*inside<Stream>(handle), [=] { set_up_generator(states, seed); });
  return CUDNN_STATUS_SUCCESS;
}
// States go on where the last call left them; the seed is only remembered.
STAND_IN_API cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t d,
                                                         cudnnHandle_t handle, float rate,
                                                         void* states, std::size_t bytes,
                                                         unsigned long long) {
  if (!d || !handle || !states || bytes < 1024 || !(rate >= 0.0F && rate <= 1.0F)) {
    return answer(CUDNN_STATUS_BAD_PARAM);
  }
  *inside<DropoutDescriptor>(d) = {rate, true, states};
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN_API cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* d) {
  return make<DataDescriptor>(d);
}
STAND_IN_API cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t d) {
  return destroy<DataDescriptor>(d);
}
STAND_IN_API cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d,
                                                     cudnnDataType_t type,
                                                     cudnnRNNDataLayout_t layout, int time,
                                                     int batch, int width, const int* lengths,
                                                     void* fill) {
  if (!d || !known_type(type) || time < 1 || batch < 1 || width < 1 || !lengths) {
    return answer(CUDNN_STATUS_BAD_PARAM);
  }
  if (time > setting("STAND_IN_MAX_TIME", 65535)) return answer(CUDNN_STATUS_NOT_SUPPORTED);
  for (int b = 0; b < batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > time) return answer(CUDNN_STATUS_BAD_PARAM);
  }
  const bool packed = layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  if (packed && !sorted_and_full(time, batch, lengths)) return answer(CUDNN_STATUS_BAD_PARAM);
  *inside<DataDescriptor>(d) = {
      type, layout, time, batch, width, {lengths, lengths + batch}, fill != nullptr};
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN_API cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* d) {
  return make<RnnDescriptor>(d);
}
STAND_IN_API cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t d) {
  return destroy<RnnDescriptor>(d);
}
STAND_IN_API cudnnStatus_t cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t d, cudnnRNNAlgo_t algo, cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
    cudnnDirectionMode_t direction, cudnnRNNInputMode_t input, cudnnDataType_t type,
    cudnnDataType_t precision, cudnnMathType_t math, std::int32_t input_size, std::int32_t hidden,
    std::int32_t projection, std::int32_t layers, cudnnDropoutDescriptor_t dropout,
    std::uint32_t flags) {
  if (!d || !dropout || !inside<DropoutDescriptor>(dropout)->set || !known_type(type) ||
      input_size < 1 || hidden < 1 || projection < 1 || layers < 1) {
    return answer(CUDNN_STATUS_BAD_PARAM);
  }
  // What the library never asks for is not computed here.
  if (bias != CUDNN_RNN_DOUBLE_BIAS) return answer(CUDNN_STATUS_NOT_SUPPORTED);
  if (projection > hidden || (projection < hidden && cell != CUDNN_LSTM)) {
    return answer(CUDNN_STATUS_NOT_SUPPORTED);
  }
  const bool persists = algo != CUDNN_RNN_ALGO_STANDARD;
  if (persists && (projection < hidden || type == CUDNN_DATA_DOUBLE)) {
    return answer(CUDNN_STATUS_NOT_SUPPORTED);
  }
  if (precision != (type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) {
    return answer(CUDNN_STATUS_NOT_SUPPORTED);
  }
  *inside<RnnDescriptor>(d) = {algo,
                               cell,
                               direction,
                               input,
                               type,
                               math,
                               input_size,
                               hidden,
                               projection,
                               layers,
                               *inside<DropoutDescriptor>(dropout),
                               flags};
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
