#include "cudnn/stand_in/rnn_descriptors.h"

#include "cudnn/stand_in/machine.h"
#include "openrnn/params.h"

namespace openrnn::stand_in {

std::int64_t DataDescriptor::count() const {
  if (!packed()) return std::int64_t{time} * batch;
  std::int64_t sum = 0;
  for (const int length : lengths) sum += length;
  return sum;
}

std::int64_t DataDescriptor::place(int t, int b) const {
  if (layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED) return std::int64_t{b} * time + t;
  if (!packed()) return std::int64_t{t} * batch + b;
  // Rows are sorted, so those that have step t are the first ones.
  std::int64_t before = 0;
  for (const int length : lengths) before += std::min(length, t);
  return before + b;
}

bool DataDescriptor::even() const {
  for (const int length : lengths) {
    if (length != time) return false;
  }
  return true;
}

RnnSpec RnnDescriptor::spec() const {
  RnnSpec spec;
  spec.mode = cell == CUDNN_LSTM       ? RnnMode::kLstm
              : cell == CUDNN_GRU      ? RnnMode::kGru
              : cell == CUDNN_RNN_TANH ? RnnMode::kRnnTanh
                                       : RnnMode::kRnnRelu;
  spec.num_layers = layers;
  spec.num_units = hidden;
  spec.input_size = input_size;
  spec.input_mode = input == CUDNN_SKIP_INPUT ? InputMode::kSkipInput : InputMode::kLinearInput;
  spec.direction =
      direction == CUDNN_BIDIRECTIONAL ? Direction::kBidirectional : Direction::kUnidirectional;
  spec.dtype = type == CUDNN_DATA_HALF    ? DType::kFloat16
               : type == CUDNN_DATA_FLOAT ? DType::kFloat32
                                          : DType::kFloat64;
  if (projection < hidden) spec.num_proj = projection;
  return spec;
}

WeightPlaces weight_places(const RnnSpec& spec) {
  const ParamsLayout layout(spec);
  WeightPlaces places;
  for (const ParamRegion& region : layout.weights()) places.weights.push_back(region.offset);
  for (const ParamRegion& region : layout.biases()) places.biases.push_back(region.offset);
  places.size = layout.size();
  if (setting("STAND_IN_PERMUTE", 0) == 0) return places;
  constexpr std::int64_t kGap = 8;
  places.size = kGap;
  const auto lay_out = [&places](std::span<const ParamRegion> regions, auto& starts) {
    for (std::size_t r = regions.size(); r-- > 0;) {
      starts[r] = places.size;
      places.size += regions[r].size() + kGap;
    }
  };
  lay_out(layout.biases(), places.biases);
  lay_out(layout.weights(), places.weights);
  return places;
}

}  // namespace openrnn::stand_in
