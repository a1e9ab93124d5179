// What cuDNN's descriptors hold.
#pragma once

#include <cudnn.h>

#include <array>
#include <vector>

#include "openrnn/spec.h"

namespace openrnn::stand_in {

struct TensorDescriptor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> dims, strides;
};

struct DropoutDescriptor {
  float rate = 0.0F;
  bool set = false;
  void* states = nullptr;  // of the device; null: of no generator
};

struct DataDescriptor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  int time = 0, batch = 0, width = 0;
  std::vector<int> lengths;
  bool fills = false;

  bool packed() const { return layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED; }
  /// Vectors in memory.
  std::int64_t count() const;
  /// The place of a step's vector; only steps inside a row have one when packed.
  std::int64_t place(int t, int b) const;
  bool even() const;
};

struct RnnDescriptor {
  cudnnRNNAlgo_t algo = CUDNN_RNN_ALGO_STANDARD;
  cudnnRNNMode_t cell = CUDNN_LSTM;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  cudnnRNNInputMode_t input = CUDNN_LINEAR_INPUT;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int input_size = 0, hidden = 0, projection = 0, layers = 0;
  DropoutDescriptor dropout;
  unsigned flags = 0;

  /// The same network in the library's words.
  RnnSpec spec() const;
};

inline std::size_t bytes_of_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF ? 2 : type == CUDNN_DATA_FLOAT ? 4 : 8;
}

/// Where each region of the weights lies, in elements; and elements in all. The order is that of
/// ParamsLayout's weights and biases; STAND_IN_PERMUTE=1 reverses it and leaves gaps.
struct WeightPlaces {
  std::vector<std::int64_t> weights, biases;
  std::int64_t size = 0;
};
WeightPlaces weight_places(const RnnSpec& spec);

}  // namespace openrnn::stand_in
