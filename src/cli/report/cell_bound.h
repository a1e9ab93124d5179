// How far two correct computations of one step may differ.
#pragma once

#include "openrnn/train_model.h"

namespace openrnn::cli {

/// For one step of a SequenceModel over symbols, computed twice from the same state in one dtype.
/// A product over k terms is off by (0.5 sqrt(k) + 4) eps times the norms of its factors, the 4 for
/// roundings around it; errors of a product's terms add up as their norm; sigmoid passes at most a
/// quarter of an error on, tanh all of it; a layer passes its error to the next. Both sides have
/// errors, so everything counts twice.
class CellBound {
 public:
  explicit CellBound(const train::SequenceModel& model);
  /// Of the logits after the step from state `before` (empty: zeros) to state `after`.
  double of_step(const std::vector<Tensor>& before, const std::vector<Tensor>& after) const;

 private:
  struct Layer {
    double row_norm = 0.0;   // largest Euclidean norm of a row of [W | R]
    double bias = 0.0;       // largest sum of the absolute biases of a unit
    std::int64_t width = 0;  // in_l + U
  };
  static Layer make_layer(const ParamsLayout& layout, const Array& params, std::int64_t layer);
  /// Of h, from the norm of [x, h'], the error of x and the largest element of the state.
  double of_layer(const Layer& layer, double norm, double input_error, double largest_state) const;

  RnnMode mode_;
  double epsilon_, units_, input_norm_ = 1.0;
  std::vector<Layer> layers_;
  double dense_norm_ = 0.0, dense_bias_ = 0.0;
};

}  // namespace openrnn::cli
