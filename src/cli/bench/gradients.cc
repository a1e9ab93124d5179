#include "cli/bench/gradients.h"

#include <fmt/core.h>

#include "cli/bench/passes.h"
#include "openrnn/graph_jvp.h"
#include "openrnn/layers.h"

namespace openrnn::cli {
namespace {

constexpr double kMegabyte = 1e6;

BenchConfig config_of(RnnMode mode, std::int64_t layers, Direction direction, std::int64_t time) {
  BenchConfig config;
  config.batch = 32;
  config.time = time;
  config.spec = {.mode = mode,
                 .num_layers = layers,
                 .num_units = 256,
                 .input_size = 256,
                 .direction = direction};
  config.name = fmt::format("{}{}{} U256 B32 T{}", mode == RnnMode::kLstm ? "LSTM" : "GRU",
                            layers > 1 ? fmt::format(" L{}", layers) : "",
                            config.spec.num_dirs() > 1 ? " bidirectional" : "", time);
  return config;
}

double kept_mb(const BenchConfig& config) {
  const Explanation found =
      explain(config.spec, {config.time, config.batch, nullptr, config.recompute});
  return static_cast<double>(found.saved_bytes.value_or(0)) / kMegabyte;
}

GradientCost in_less_memory(const BenchConfig& plain) {
  BenchConfig less = plain;
  less.recompute = kRecomputeRoot;
  Passes a(plain), b(less);
  const Compared times = compare([&] { a.forward_backward(); }, [&] { b.forward_backward(); }, 1);
  return {.config = plain.name,
          .call = "save=inputs",
          .ratio = times.ratio,
          .milliseconds = times.second_ms,
          .plain_milliseconds = times.first_ms,
          .kept_mb = kept_mb(less),
          .plain_kept_mb = kept_mb(plain)};
}

/// A layer's call, and what differentiates it.
class Network {
 public:
  explicit Network(const BenchConfig& config) : layer_(config.spec) {
    Array x(DType::kFloat32, {config.time, config.batch, config.spec.input_size});
    RandomStream random(1, 2);
    for (float& element : x.as<float>()) element = static_cast<float>(random.uniform(-1.0, 1.0));
    x_ = Tensor(x.view());
    layer_.build(x_.shape());
  }

  /// Of the sum of the output, by x and the parameters.
  void gradients() const {
    GradientTape tape;
    const Tensor x = tape.watch(x_);
    const Tensor sum = ops::reduce_sum(output(x));
    tape.close();
    tape.gradient(sum, std::vector{x, layer_.kernel().read()});
  }

  /// Of the squared norm of the gradient by x, by x and the parameters.
  void gradients_of_gradients() const {
    GradientTape outer;
    const Tensor x = outer.watch(x_);
    GradientTape inner;
    const Tensor sum = ops::reduce_sum(output(x));
    inner.close();
    const Tensor slope = inner.gradients({sum}, std::vector{x})[0];
    const Tensor penalty = ops::reduce_sum(ops::square(slope));
    outer.close();
    outer.gradient(penalty, std::vector{x, layer_.kernel().read()});
  }

  void jacobian_product() const {
    jvp([this](const std::vector<Tensor>& in) { return std::vector{output(in[0])}; }, {x_}, {x_});
  }

 private:
  Tensor output(const Tensor& x) const { return layer_(x).output; }

  mutable layers::CudnnLSTM layer_;
  Tensor x_;
};

GradientCost of_second_order(const BenchConfig& config, const Network& network,
                             const std::string& call, const std::function<void()>& work) {
  const Compared times = compare([&] { network.gradients(); }, work, 1);
  return {.config = config.name,
          .call = call,
          .ratio = times.ratio,
          .milliseconds = times.second_ms,
          .plain_milliseconds = times.first_ms};
}

}  // namespace

std::vector<GradientCost> measure_gradients(
    const std::string& only, const std::function<void(const GradientCost&)>& report) {
  constexpr auto kOne = Direction::kUnidirectional, kBoth = Direction::kBidirectional;
  std::vector<GradientCost> costs;
  const auto wanted = [&](const BenchConfig& config, const std::string& call) {
    return fmt::format("{} {}", config.name, call).find(only) != std::string::npos;
  };
  const auto add = [&](GradientCost cost) {
    report(cost);
    costs.push_back(std::move(cost));
  };
  for (const BenchConfig& config :
       {config_of(RnnMode::kLstm, 1, kOne, 512), config_of(RnnMode::kGru, 1, kOne, 512),
        config_of(RnnMode::kLstm, 4, kOne, 256), config_of(RnnMode::kLstm, 1, kBoth, 512),
        config_of(RnnMode::kLstm, 2, kBoth, 256)}) {
    if (wanted(config, "save=inputs")) add(in_less_memory(config));
  }
  const BenchConfig config = config_of(RnnMode::kLstm, 1, kOne, 100);
  const Network network(config);
  if (wanted(config, "gradients of gradients")) {
    add(of_second_order(config, network, "gradients of gradients",
                        [&] { network.gradients_of_gradients(); }));
  }
  if (wanted(config, "jvp")) {
    add(of_second_order(config, network, "jvp", [&] { network.jacobian_product(); }));
  }
  return costs;
}

}  // namespace openrnn::cli
