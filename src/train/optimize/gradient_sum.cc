// The gradients of a step that is computed in parts.
#include "openrnn/train_optimizer.h"
#include "train/message.h"
#include "train/optimize/tree_sum.h"

namespace openrnn::train {

std::int64_t rows_of_part(std::int64_t rows, std::int64_t parts, std::int64_t part) {
  return rows / parts + (part < rows % parts ? 1 : 0);
}

GradientSum::GradientSum() : sum_(std::make_unique<TreeSum>()) {}
GradientSum::~GradientSum() = default;

PartValues part_values(Optimizer& optimizer, const GradientTape& tape, const Tensor& loss,
                       const std::vector<Variable>& variables, double share) {
  if (loss.value().size() != 1) {
    throw ArgumentError(message("GradientSum", "a loss of shape ", openrnn::to_string(loss.shape()),
                                ", expected one number, the mean over the part's rows"));
  }
  PartValues leaf = optimizer.compute_gradients(tape, loss, variables, share);
  const Device& device = loss.value().device();
  DeviceArray value(device, DType::kFloat64, {});
  device.convert(1, loss.dtype(), loss.value().data(), DType::kFloat64, value.mutable_data());
  device.scale(DType::kFloat64, 1, share, value.data(), value.mutable_data());
  leaf.push_back(std::move(value));
  return leaf;
}

void GradientSum::add(Optimizer& optimizer, const GradientTape& tape, const Tensor& loss,
                      const std::vector<Variable>& variables, double share) {
  sum_->add(part_values(optimizer, tape, loss, variables, share));
}

void GradientSum::skip() { sum_->add({}); }

GradientSum::Step step_of(PartValues all) {
  if (all.empty()) throw ArgumentError(message("GradientSum", "no part, expected one"));
  GradientSum::Step step;
  step.loss = Tensor(std::move(all.back()));
  all.pop_back();
  step.gradients = std::move(all);
  return step;
}

GradientSum::Step GradientSum::take() { return step_of(sum_->take()); }

}  // namespace openrnn::train
