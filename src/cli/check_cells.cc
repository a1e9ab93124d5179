// openrnn check-cells: the checkpoint of a text model, read by the compatible cells, which share no
// code with the engine, must give the same numbers.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/commands.h"
#include "cli/report/cell_bound.h"
#include "openrnn/cells.h"
#include "openrnn/train.h"

namespace openrnn::cli {
namespace {

constexpr std::size_t kMostSymbols = 256;

/// The same model made of cells, in its own graph.
class CellModel {
 public:
  explicit CellModel(const train::TrainedModel& trained)
      : config_(trained.config().model), network_(config_.network), current_(graph_) {
    check_network();
    if (config_.embedding > 0) {
      layers::EmbeddingOptions embedding;
      embedding.vocabulary = config_.vocabulary;
      embedding.dim = config_.embedding;
      embedding.dtype = network_.dtype;
      embedding_ = std::make_unique<layers::Embedding>(embedding);
    }
    std::vector<std::shared_ptr<RnnCell>> cells;
    for (std::int64_t layer = 0; layer < network_.num_layers; ++layer) {
      cells.push_back(make_compatible_cell(
          network_.mode, {.num_units = network_.num_units, .dtype = network_.dtype}));
    }
    cell_ = std::make_unique<MultiRNNCell>(std::move(cells));
    layers::DenseOptions dense;
    dense.units = config_.outputs;
    dense.dtype = network_.dtype;
    dense_ = std::make_unique<layers::Dense>(dense);
    // One call makes the variables; then the file fills them.
    (void)run({0}, cell_->zero_state(1, network_.dtype));
    Saver().restore(trained.prefix());
  }

  /// Logits [T, 1, V] of symbols from a state of [1, U] tensors.
  Tensor run(const std::vector<std::int32_t>& ids, const CellState& state) {
    const Array indices = Array::of<std::int32_t>({static_cast<std::int64_t>(ids.size()), 1},
                                                  std::span<const std::int32_t>(ids));
    const Tensor x = embedding_
                         ? (*embedding_)(indices.view())
                         : ops::one_hot(Tensor(indices.view()), config_.vocabulary, network_.dtype);
    DynamicRnnOptions options;
    options.initial_state = state;
    options.time_major = true;
    return (*dense_)(dynamic_rnn(*cell_, x, options).outputs);
  }
  CellState zero_state() const { return cell_->zero_state(1, network_.dtype); }

 private:
  /// Throws: ArgumentError naming what the cells do not have.
  void check_network() const {
    const RnnSpec of_cells{.mode = network_.mode,
                           .num_layers = network_.num_layers,
                           .num_units = network_.num_units,
                           .dtype = network_.dtype,
                           .training = network_.training,
                           .compute = network_.compute};
    for (const RnnField& field : rnn_fields()) {
      if (field.get(network_) == field.get(of_cells)) continue;
      throw ArgumentError(fmt::format(
          "[check-cells] a run with {} {}, which the compatible cells do not have, expected {}",
          field.name, to_string(field.get(network_)), to_string(field.default_value())));
    }
  }

  train::ModelConfig config_;
  RnnSpec network_;
  Graph graph_;
  Graph::AsDefault current_;
  std::unique_ptr<layers::Embedding> embedding_;
  std::unique_ptr<MultiRNNCell> cell_;
  std::unique_ptr<layers::Dense> dense_;
};

/// The engine's state [L, 1, U] (h, then c) as the cells take it: (c, h) or (h) of each layer.
CellState cell_state(const std::vector<Tensor>& state) {
  CellState cells;
  const std::int64_t layers = state[0].shape()[0];
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (std::size_t part = state.size(); part-- > 0;) {
      const Tensor one = ops::slice(state[part], {0, layer, 1});
      cells.push_back(ops::reshape(one, {1, one.shape()[2]}));
    }
  }
  return cells;
}

double max_difference(const Array& a, const Array& b) {
  double most = 0.0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(element(a.view(), i) - element(b.view(), i));
    // A NaN must not pass for 0.
    if (!(difference <= most)) most = std::isnan(difference) ? INFINITY : difference;
  }
  return most;
}

}  // namespace

int run(const CheckCellsFlags& flags) {
  use_threads(flags.threads);
  require_file("--input", flags.input);
  // The cells compute in float32 arithmetic only.
  train::TrainedModel trained(flags.run, {.math = Math::kFloat32});
  if (trained.config().task != "text") {
    throw ArgumentError("[check-cells] a run of the task '" + trained.config().task +
                        "', expected text");
  }
  std::vector<std::int32_t> ids = trained.vocabulary().encode(read_file(flags.input));
  ids.resize(std::min(ids.size(), kMostSymbols));
  if (ids.empty()) {
    throw ArgumentError("[check-cells] '" + flags.input + "' is empty, expected a text");
  }
  CellModel cells(trained);
  // Each step starts from the same state, so that the recurrence does not accumulate rounding and a
  // bound can be derived.
  double worst = 0.0, worst_share = 0.0;
  const CellBound bound(trained.model());
  std::vector<Tensor> state;
  for (const std::int32_t id : ids) {
    const CellState from = state.empty() ? cells.zero_state() : cell_state(state);
    const Array step = Array::of<std::int32_t>({1, 1}, std::span<const std::int32_t>(&id, 1));
    train::SequenceModel::Result result = trained.model()(step, state);
    const double difference =
        max_difference(result.outputs.to_host(), cells.run({id}, from).to_host());
    worst = std::max(worst, difference);
    const double share = difference / bound.of_step(state, result.state);
    // A bound that is not finite is no bound.
    worst_share = std::isfinite(share) ? std::max(worst_share, share) : INFINITY;
    state = std::move(result.state);
  }
  const auto length = static_cast<std::int64_t>(ids.size());
  const Array whole = Array::of<std::int32_t>({length, 1}, std::span<const std::int32_t>(ids));
  const double carried = max_difference(trained.model()(whole).outputs.to_host(),
                                        cells.run(ids, cells.zero_state()).to_host());
  fmt::print("compatible cells, {} symbols of {}\n", ids.size(), flags.input);
  fmt::print(
      "  each step from the engine's state: largest difference of a logit {:.3g}, {:.2g} % "
      "of the bound\n",
      worst, 100.0 * worst_share);
  fmt::print("  the whole text at once: {:.3g}\n", carried);
  if (worst_share > 1.0) {
    throw EngineError(
        fmt::format("[check-cells] cells and engine differ by {:.3g}, {:.2f} times "
                    "the bound, expected at most the bound",
                    worst, worst_share));
  }
  fmt::print("  the same numbers\n");
  return 0;
}

}  // namespace openrnn::cli
