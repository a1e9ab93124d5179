// A layer and the cells that should do the same, with data for both.
#pragma once

#include "checkpoint/bounded_network.h"
#include "openrnn/cells.h"
#include "openrnn/layers.h"

namespace openrnn::testing {

/// Different everywhere, of the size of 1, rounded to the dtype.
inline Array varied(DType dtype, Shape shape, std::uint64_t seed, double size = 1.0) {
  Array values(dtype, std::move(shape));
  RandomStream random(seed);
  if (values.size() > 0) random_uniform_initializer(-size, size)(values.view(), random);
  return values;
}

inline NetworkData network_data(const RnnSpec& spec, std::int64_t max_time,
                                std::vector<std::int32_t> lengths) {
  const auto batch = static_cast<std::int64_t>(lengths.size());
  return {spec, varied(spec.dtype, {max_time, batch, spec.input_size}, 1),
          varied(spec.dtype, spec.h_shape(batch), 2), varied(spec.dtype, spec.c_shape(batch), 3),
          std::move(lengths)};
}

inline std::unique_ptr<layers::CudnnRnn> layer_of(
    const RnnSpec& spec, const Initializer& bias = random_uniform_initializer(-0.6, 0.6)) {
  return layers::make_cudnn_rnn({.network = {.mode = spec.mode,
                                             .num_layers = spec.num_layers,
                                             .num_units = spec.num_units,
                                             .input_mode = spec.input_mode,
                                             .direction = spec.direction,
                                             .dtype = spec.dtype,
                                             .training = {.seed = 5}},
                                 .kernel_initializer = random_uniform_initializer(-0.6, 0.6),
                                 .bias_initializer = bias});
}

struct Results {
  Array output;
  /// [L*D, B, U].
  Array h, c;
};

inline Results run_layer(layers::CudnnRnn& layer, const NetworkData& data) {
  std::vector<Tensor> state{Tensor(data.h0.view())};
  const bool lstm = data.spec.mode == RnnMode::kLstm;
  if (lstm) state.push_back(Tensor(data.c0.view()));
  layers::RnnCallOptions call;
  call.sequence_lengths = data.lengths;
  call.training = false;
  const layers::RnnResult result = layer(Tensor(data.x.view()), state, call);
  return {result.output.to_host(), result.state[0].to_host(),
          lstm ? result.state[1].to_host() : Array()};
}

/// The cells for a spec, called as TensorFlow's documentation says.
class CellNetwork {
 public:
  explicit CellNetwork(const RnnSpec& spec) : spec_(spec) {
    CompatibleCellOptions options;
    options.num_units = spec.num_units;
    options.dtype = spec.dtype;
    for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
      fw_.push_back(make_compatible_cell(spec.mode, options));
      bw_.push_back(make_compatible_cell(spec.mode, options));
    }
    if (spec.num_dirs() == 1) stack_ = std::make_shared<MultiRNNCell>(fw_);
  }

  Results run(const NetworkData& data) {
    std::vector<CellState> start;
    for (std::int64_t p = 0; p < spec_.num_pseudo_layers(); ++p) {
      start.push_back(state_at(data, p));
    }
    if (spec_.num_dirs() == 1) return run_stack(data, start);
    StackBidirectionalOptions options;
    options.sequence_lengths = data.lengths;
    options.time_major = true;
    options.initial_states_fw.emplace();
    options.initial_states_bw.emplace();
    for (std::size_t p = 0; p < start.size(); ++p) {
      (p % 2 == 0 ? options.initial_states_fw : options.initial_states_bw)->push_back(start[p]);
    }
    const auto result = stack_bidirectional_dynamic_rnn(fw_, bw_, Tensor(data.x.view()), options);
    std::vector<CellState> last;
    for (std::size_t layer = 0; layer < fw_.size(); ++layer) {
      last.push_back(result.states_fw[layer]);
      last.push_back(result.states_bw[layer]);
    }
    return results(result.outputs, last);
  }

 private:
  // A cell's lstm state is (c, h).
  CellState state_at(const NetworkData& data, std::int64_t p) const {
    const auto part = [&](const Array& all) {
      const Tensor slice = ops::slice(Tensor(all.view()), {.axis = 0, .begin = p, .size = 1});
      return ops::reshape(slice, {all.shape()[1], all.shape()[2]});
    };
    if (spec_.mode == RnnMode::kLstm) return {part(data.c0), part(data.h0)};
    return {part(data.h0)};
  }

  Results run_stack(const NetworkData& data, const std::vector<CellState>& start) {
    DynamicRnnOptions options;
    options.sequence_lengths = data.lengths;
    options.time_major = true;
    options.initial_state.emplace();
    for (const CellState& state : start) {
      options.initial_state->insert(options.initial_state->end(), state.begin(), state.end());
    }
    const DynamicRnnResult result = dynamic_rnn(*stack_, Tensor(data.x.view()), options);
    return results(result.outputs, stack_->split_state(result.state));
  }

  Results results(const Tensor& outputs, const std::vector<CellState>& last) const {
    const bool lstm = spec_.mode == RnnMode::kLstm;
    std::vector<Tensor> h, c;
    for (const CellState& state : last) {
      h.push_back(state[lstm ? 1 : 0]);
      c.push_back(state[0]);
    }
    return {outputs.to_host(), ops::stack(h).to_host(), lstm ? ops::stack(c).to_host() : Array()};
  }

  RnnSpec spec_;
  std::vector<std::shared_ptr<RnnCell>> fw_, bw_;
  std::shared_ptr<MultiRNNCell> stack_;
};

}  // namespace openrnn::testing
