// The functions of cuDNN that are used.
#pragma once

#include <cudnn.h>

#include <string>

namespace openrnn::cudnn {

struct CudnnApi {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error = nullptr;  // null in versions before 9.0
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;

  decltype(&cudnnCreateTensorDescriptor) create_tensor = nullptr;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor = nullptr;
  decltype(&cudnnSetTensorNdDescriptor) set_tensor = nullptr;
  decltype(&cudnnGetTensorNdDescriptor) get_tensor = nullptr;
  decltype(&cudnnCreateDropoutDescriptor) create_dropout = nullptr;
  decltype(&cudnnDestroyDropoutDescriptor) destroy_dropout = nullptr;
  decltype(&cudnnDropoutGetStatesSize) dropout_states_size = nullptr;
  decltype(&cudnnSetDropoutDescriptor) set_dropout = nullptr;
  decltype(&cudnnRestoreDropoutDescriptor) restore_dropout = nullptr;
  decltype(&cudnnCreateRNNDataDescriptor) create_data = nullptr;
  decltype(&cudnnDestroyRNNDataDescriptor) destroy_data = nullptr;
  decltype(&cudnnSetRNNDataDescriptor) set_data = nullptr;
  decltype(&cudnnCreateRNNDescriptor) create_rnn = nullptr;
  decltype(&cudnnDestroyRNNDescriptor) destroy_rnn = nullptr;
  decltype(&cudnnSetRNNDescriptor_v8) set_rnn = nullptr;

  decltype(&cudnnGetRNNWeightSpaceSize) weight_space_size = nullptr;
  decltype(&cudnnGetRNNWeightParams) weight_params = nullptr;
  decltype(&cudnnGetRNNTempSpaceSizes) temp_space_sizes = nullptr;
  decltype(&cudnnRNNForward) forward = nullptr;
  decltype(&cudnnRNNBackwardData_v8) backward_data = nullptr;
  decltype(&cudnnRNNBackwardWeights_v8) backward_weights = nullptr;
};

/// Opens libcudnn.so.9. What is wrong; empty when nothing is.
std::string open_cudnn(CudnnApi& api);

}  // namespace openrnn::cudnn
