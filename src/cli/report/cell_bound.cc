#include "cli/report/cell_bound.h"

#include <algorithm>
#include <cmath>

namespace openrnn::cli {
namespace {

double epsilon_of(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-10;
  if (dtype == DType::kBfloat16) return 0x1p-7;
  return dtype == DType::kFloat32 ? 0x1p-23 : 0x1p-52;
}

double largest(const Array& array) {
  double most = 0.0;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    most = std::max(most, std::fabs(element(array.view(), i)));
  }
  return most;
}

/// Euclidean norm of `count` elements from `first` on, `stride` apart.
double norm_of(const Array& array, std::int64_t first, std::int64_t count, std::int64_t stride) {
  double squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = element(array.view(), first + i * stride);
    squares += value * value;
  }
  return std::sqrt(squares);
}

/// Norms of each layer's h in a state [L, 1, U].
std::vector<double> hidden_norms(const std::vector<Tensor>& state, std::size_t layers) {
  std::vector<double> norms(layers, 0.0);
  if (state.empty()) return norms;
  const Array h = state[0].to_host();
  const std::int64_t units = h.shape()[2];
  for (std::size_t l = 0; l < layers; ++l) {
    norms[l] = norm_of(h, static_cast<std::int64_t>(l) * units, units, 1);
  }
  return norms;
}

}  // namespace

CellBound::Layer CellBound::make_layer(const ParamsLayout& layout, const Array& params,
                                       std::int64_t l) {
  const RnnSpec& spec = layout.spec();
  Layer layer;
  layer.width = spec.layer_input_size(l) + spec.num_units;
  for (std::int64_t gate = 0; gate < spec.num_gates(); ++gate) {
    const ParamRegion& w = layout.weight(l, 0, ParamRole::kInputWeight, gate);
    const ParamRegion& r = layout.weight(l, 0, ParamRole::kRecurrentWeight, gate);
    const ParamRegion& bw = layout.bias(l, 0, ParamRole::kInputBias, gate);
    const ParamRegion& br = layout.bias(l, 0, ParamRole::kRecurrentBias, gate);
    for (std::int64_t row = 0; row < spec.num_units; ++row) {
      const double norm = std::hypot(norm_of(params, w.offset + row * w.cols, w.cols, 1),
                                     norm_of(params, r.offset + row * r.cols, r.cols, 1));
      layer.row_norm = std::max(layer.row_norm, norm);
      const double bias = std::fabs(element(params.view(), bw.offset + row)) +
                          std::fabs(element(params.view(), br.offset + row));
      layer.bias = std::max(layer.bias, bias);
    }
  }
  return layer;
}

CellBound::CellBound(const train::SequenceModel& model)
    : mode_(model.config().network.mode),
      epsilon_(epsilon_of(model.config().network.dtype)),
      units_(static_cast<double>(model.config().network.num_units)) {
  const ParamsLayout layout(model.rnn().spec());
  const Array params = model.rnn().kernel().to_host();
  for (std::int64_t l = 0; l < layout.spec().num_layers; ++l) {
    layers_.push_back(make_layer(layout, params, l));
  }
  const Array kernel = model.dense().kernel().to_host();
  const std::int64_t units = kernel.shape()[0], classes = kernel.shape()[1];
  for (std::int64_t c = 0; c < classes; ++c) {
    dense_norm_ = std::max(dense_norm_, norm_of(kernel, c, units, classes));
  }
  dense_bias_ = largest(model.dense().bias().to_host());
  if (model.embedding() == nullptr) return;
  const Array table = model.embedding()->embeddings().to_host();
  const std::int64_t dim = table.shape()[1];
  input_norm_ = 0.0;
  for (std::int64_t row = 0; row < table.shape()[0]; ++row) {
    input_norm_ = std::max(input_norm_, norm_of(table, row * dim, dim, 1));
  }
}

double CellBound::of_layer(const Layer& layer, double norm, double input_error,
                           double largest_state) const {
  const double terms = 0.5 * std::sqrt(static_cast<double>(layer.width)) + 4.0;
  const double product = layer.row_norm * norm + layer.bias;
  const double a = epsilon_ * terms * product + layer.row_norm * input_error;
  const double roundings = 8.0 * epsilon_ * (1.0 + largest_state);
  switch (mode_) {
    case RnnMode::kLstm:  // c = f c' + i g, h = o tanh(c)
      return a * (0.25 * largest_state + 0.25 + 1.0 + 0.25) + roundings;
    case RnnMode::kGru:  // n = tanh(xn + r hn), h = (1 - z) n + z h'
      return a * (2.0 + 0.25 * product + 0.5) + roundings;
    default:
      return a + roundings;
  }
}

double CellBound::of_step(const std::vector<Tensor>& before,
                          const std::vector<Tensor>& after) const {
  const std::vector<double> old = hidden_norms(before, layers_.size());
  const std::vector<double> now = hidden_norms(after, layers_.size());
  double largest_state = 0.0;
  for (const auto* state : {&before, &after}) {
    for (const Tensor& part : *state) {
      largest_state = std::max(largest_state, largest(part.to_host()));
    }
  }
  double error = 0.0;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const double input = l == 0 ? input_norm_ : now[l - 1];
    error = of_layer(layers_[l], std::hypot(input, old[l]), error, largest_state);
  }
  const double terms = 0.5 * std::sqrt(units_) + 4.0;
  const double dense = epsilon_ * terms * (dense_norm_ * now.back() + dense_bias_);
  return 2.0 * (dense + dense_norm_ * error);
}

}  // namespace openrnn::cli
