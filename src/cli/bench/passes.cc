#include "cli/bench/passes.h"

#include <algorithm>
#include <chrono>

namespace openrnn::cli {
namespace {

Array random_array(Shape shape, double scale, std::uint64_t stream) {
  Array array(DType::kFloat32, std::move(shape));
  RandomStream random(1, stream);
  for (float& x : array.as<float>()) x = static_cast<float>(random.uniform(-scale, scale));
  return array;
}

bool trains(const BenchConfig& config) {
  return config.spec.compute.weights_dtype == WeightsDType::kNone;
}

}  // namespace

Passes::Passes(const BenchConfig& config)
    : config_(config),
      device_(default_device()),
      engine_(choose_engine(config.spec, device_)),
      params_(there(initialize_params(ParamsLayout(config.spec), 1))),
      x_(there(random_array({config.time, config.batch, config.spec.input_size}, 1.0, 2))),
      y_(device_, DType::kFloat32, {config.time, config.batch, config.spec.output_size()}),
      dy_(there(random_array(y_.shape(), 1.0, 3))),
      dx_(device_, DType::kFloat32, x_.shape()),
      dparams_(device_, DType::kFloat32, params_.shape()) {
  const ConstArrayView params{params_.data(), DType::kFloat32, params_.shape()};
  const auto inference = engine_.pack(config.spec, params, PackFor::kInference);
  workspace_ = engine_.make_workspace(inference, {config.batch, config.time});
  forward_.params = inference;
  forward_.max_time = config.time;
  forward_.batch = config.batch;
  forward_.x = x_.data();
  forward_.y = y_.mutable_data();
  if (!trains(config)) return;
  training_ = forward_;
  training_.params = engine_.pack(config.spec, params, PackFor::kTraining);
  training_.training = true;
  training_.recompute = config.recompute;
}

std::vector<Passes::Pass> Passes::all() {
  std::vector<Pass> found{{"forward", [this] { forward(); }, config_.flop()}};
  if (!trains(config_)) return found;
  // Backward computes twice the products of forward: for the inputs and for the weights.
  found.push_back({"forward_training", [this] { forward_training(); }, config_.flop()});
  found.push_back({"forward_backward", [this] { forward_backward(); }, 3.0 * config_.flop()});
  return found;
}

void Passes::forward() {
  engine_.forward(forward_, workspace_.get());
  wait_for(y_);
}

void Passes::forward_training() {
  saved_ = engine_.forward_saving(training_);
  wait_for(y_);
}

void Passes::forward_backward() {
  saved_.reset();  // as training does, which keeps one step's values
  saved_ = engine_.forward_saving(training_);
  BackwardArgs args;
  args.saved = saved_.get();
  args.dy = dy_.data();
  args.dx = dx_.mutable_data();
  args.dparams = dparams_.mutable_data();
  engine_.backward(args);
  wait_for(dparams_);
}

void Passes::wait_for(const DeviceArray& result) {
  float first = 0.0F;
  if (!on_processor()) device_.download(&first, result.data(), sizeof first);
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Compared compare(const std::function<void()>& first, const std::function<void()>& second,
                 int tries) {
  constexpr int kRounds = 9;
  const auto at_best = [tries](const std::function<void()>& work) {
    double best = seconds_of(work);
    for (int again = 1; again < tries; ++again) best = std::min(best, seconds_of(work));
    return best;
  };
  first();
  second();
  std::vector<double> ratios, firsts, seconds;
  for (int round = 0; round < kRounds; ++round) {
    firsts.push_back(at_best(first));
    seconds.push_back(at_best(second));
    ratios.push_back(seconds.back() / firsts.back());
  }
  return {median(ratios), 1e3 * median(firsts), 1e3 * median(seconds)};
}

}  // namespace openrnn::cli
