// How far two right computations of one step may lie apart.
#pragma once

#include "openrnn/train_model.h"

namespace openrnn::cli {

/// For one step of a SequenceModel over symbols, computed twice from the same state in one dtype.
/// A product over k terms is off by (0.5 sqrt(k) + 4) eps times the norms of its factors, the 4 for
/// roundings around it; sigmoid passes at most a quarter of an error on, tanh all of it; a layer
/// hands its error to the next. Both sides err, so everything counts twice.
class CellBound {
 public:
  explicit CellBound(const train::SequenceModel& model);
  /// Of the logits after a step from `state` (empty: zeros).
  double of_step(const std::vector<Tensor>& state) const;

 private:
  struct Layer {
    double row_norm = 0.0;   // largest Euclidean norm of a row of [W | R]
    double row_sum = 0.0;    // largest sum of absolute values of a row of W
    double bias = 0.0;       // largest absolute bias
    std::int64_t width = 0;  // in_l + U
  };
  double of_layer(const Layer& layer, double input_norm, double input_error,
                  double largest_state) const;

  RnnMode mode_;
  double epsilon_, units_, input_norm_ = 0.0;
  std::vector<Layer> layers_;
  double dense_norm_ = 0.0, dense_sum_ = 0.0, dense_bias_ = 0.0;
};

}  // namespace openrnn::cli
