#include "cli/report/cell_bound.h"

#include <algorithm>
#include <cmath>

namespace openrnn::cli {
namespace {

double epsilon_of(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-10;
  return dtype == DType::kFloat32 ? 0x1p-23 : 0x1p-52;
}

double largest(const Array& array) {
  double most = 0.0;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    most = std::max(most, std::fabs(element(array.view(), i)));
  }
  return most;
}

}  // namespace

CellBound::CellBound(const train::SequenceModel& model)
    : mode_(model.config().mode),
      epsilon_(epsilon_of(model.config().dtype)),
      units_(static_cast<double>(model.config().units)) {
  const RnnSpec& spec = model.rnn().spec();
  const ParamsLayout layout(spec);
  const Array params = model.rnn().kernel().to_host();
  const auto at = [&](std::int64_t i) { return element(params.view(), i); };
  for (std::int64_t l = 0; l < spec.num_layers; ++l) {
    Layer layer;
    layer.width = spec.layer_input_size(l) + spec.num_units;
    for (std::int64_t gate = 0; gate < spec.num_gates(); ++gate) {
      const ParamRegion& w = layout.weight(l, 0, ParamRole::kInputWeight, gate);
      const ParamRegion& r = layout.weight(l, 0, ParamRole::kRecurrentWeight, gate);
      for (std::int64_t row = 0; row < spec.num_units; ++row) {
        double squares = 0.0, sum = 0.0;
        for (std::int64_t c = 0; c < w.cols; ++c) {
          const double value = at(w.offset + row * w.cols + c);
          squares += value * value;
          sum += std::fabs(value);
        }
        for (std::int64_t c = 0; c < r.cols; ++c) {
          const double value = at(r.offset + row * r.cols + c);
          squares += value * value;
        }
        layer.row_norm = std::max(layer.row_norm, std::sqrt(squares));
        layer.row_sum = std::max(layer.row_sum, sum);
      }
    }
    for (const ParamRegion& bias : layout.biases()) {
      if (bias.layer != l) continue;
      for (std::int64_t i = 0; i < bias.rows; ++i) {
        layer.bias = std::max(layer.bias, 2.0 * std::fabs(at(bias.offset + i)));
      }
    }
    layers_.push_back(layer);
  }
  const Array kernel = model.dense().kernel().to_host();
  const std::int64_t classes = kernel.shape()[1];
  for (std::int64_t c = 0; c < classes; ++c) {
    double squares = 0.0, sum = 0.0;
    for (std::int64_t u = 0; u < kernel.shape()[0]; ++u) {
      const double value = element(kernel.view(), u * classes + c);
      squares += value * value;
      sum += std::fabs(value);
    }
    dense_norm_ = std::max(dense_norm_, std::sqrt(squares));
    dense_sum_ = std::max(dense_sum_, sum);
  }
  dense_bias_ = largest(model.dense().bias().to_host());
  const layers::Embedding* embedding = model.embedding();
  const double width = std::sqrt(static_cast<double>(spec.input_size));
  input_norm_ = embedding != nullptr ? largest(embedding->embeddings().to_host()) * width : 1.0;
}

double CellBound::of_layer(const Layer& layer, double input_norm, double input_error,
                           double largest_state) const {
  // |h| <= 1 but for relu, whose state may be as large as it is.
  const double hidden = mode_ == RnnMode::kRnnRelu ? std::max(1.0, largest_state) : 1.0;
  const double norm = std::hypot(input_norm, hidden * std::sqrt(units_));
  const double terms = 0.5 * std::sqrt(static_cast<double>(layer.width)) + 4.0;
  const double a =
      epsilon_ * terms * (layer.row_norm * norm + layer.bias) + layer.row_sum * input_error;
  const double roundings = 8.0 * epsilon_ * (1.0 + largest_state);
  switch (mode_) {
    case RnnMode::kLstm:  // c = f c' + i g, h = o tanh(c)
      return a * (0.25 * largest_state + 0.25 + 1.0 + 0.25) + roundings;
    case RnnMode::kGru:  // n = tanh(xn + r hn), h = (1 - z) n + z h'
      return a * (2.0 + 0.25 * (layer.row_norm * norm + layer.bias) + 0.5) + roundings;
    default:
      return a + roundings;
  }
}

double CellBound::of_step(const std::vector<Tensor>& state) const {
  double largest_state = 0.0;
  for (const Tensor& part : state) largest_state = std::max(largest_state, largest(part.to_host()));
  double norm = input_norm_, error = 0.0;
  for (const Layer& layer : layers_) {
    error = of_layer(layer, norm, error, largest_state);
    norm = std::sqrt(units_) * (mode_ == RnnMode::kRnnRelu ? std::max(1.0, largest_state) : 1.0);
  }
  const double terms = 0.5 * std::sqrt(units_) + 4.0;
  const double dense = epsilon_ * terms * (dense_norm_ * norm + dense_bias_);
  return 2.0 * (dense + dense_sum_ * error);
}

}  // namespace openrnn::cli
