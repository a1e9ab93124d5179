#include "cudnn/load/cudnn_api.h"

#include "cudnn/load/library.h"

namespace openrnn::cudnn {

std::string open_cudnn(CudnnApi& api) {
  // Some packages have the shim library, which exports everything, some only its parts.
  constexpr const char* kOps = "libcudnn_ops.so.9";
  constexpr const char* kAdv = "libcudnn_adv.so.9";
  Library lib("libcudnn.so.9", {"CUDNN_PATH", "CUDA_HOME", "CUDA_PATH"});
  lib.find("cudnnGetVersion", api.version, "libcudnn_graph.so.9");
  lib.find("cudnnGetErrorString", api.error_string, "libcudnn_graph.so.9");
  lib.find("cudnnGetLastErrorString", api.last_error, "libcudnn_graph.so.9");
  lib.find("cudnnCreate", api.create, "libcudnn_graph.so.9");
  lib.find("cudnnDestroy", api.destroy, "libcudnn_graph.so.9");
  lib.find("cudnnSetStream", api.set_stream, "libcudnn_graph.so.9");

  lib.find("cudnnCreateTensorDescriptor", api.create_tensor, kOps);
  lib.find("cudnnDestroyTensorDescriptor", api.destroy_tensor, kOps);
  lib.find("cudnnSetTensorNdDescriptor", api.set_tensor, kOps);
  lib.find("cudnnGetTensorNdDescriptor", api.get_tensor, kOps);
  lib.find("cudnnCreateDropoutDescriptor", api.create_dropout, kOps);
  lib.find("cudnnDestroyDropoutDescriptor", api.destroy_dropout, kOps);
  lib.find("cudnnDropoutGetStatesSize", api.dropout_states_size, kOps);
  lib.find("cudnnSetDropoutDescriptor", api.set_dropout, kOps);
  lib.find("cudnnRestoreDropoutDescriptor", api.restore_dropout, kOps);
  lib.find("cudnnCreateRNNDataDescriptor", api.create_data, kAdv);
  lib.find("cudnnDestroyRNNDataDescriptor", api.destroy_data, kAdv);
  lib.find("cudnnSetRNNDataDescriptor", api.set_data, kAdv);
  lib.find("cudnnCreateRNNDescriptor", api.create_rnn, kAdv);
  lib.find("cudnnDestroyRNNDescriptor", api.destroy_rnn, kAdv);
  lib.find("cudnnSetRNNDescriptor_v8", api.set_rnn, kAdv);

  lib.find("cudnnGetRNNWeightSpaceSize", api.weight_space_size, kAdv);
  lib.find("cudnnGetRNNWeightParams", api.weight_params, kAdv);
  lib.find("cudnnGetRNNTempSpaceSizes", api.temp_space_sizes, kAdv);
  lib.find("cudnnRNNForward", api.forward, kAdv);
  lib.find("cudnnRNNBackwardData_v8", api.backward_data, kAdv);
  lib.find("cudnnRNNBackwardWeights_v8", api.backward_weights, kAdv);
  return lib.problem();
}

}  // namespace openrnn::cudnn
