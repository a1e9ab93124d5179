// A recurrent layer of a model: order of steps, masks, states, and what becomes of two directions.
#include "layers/graph/values.h"

namespace openrnn::layers {

namespace {

// [B, T] with each row's steps in reverse.
std::vector<bool> reversed_rows(const std::vector<bool>& mask, std::int64_t steps) {
  std::vector<bool> out(mask.size());
  const auto width = static_cast<std::size_t>(steps);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    out[i / width * width + (width - 1 - i % width)] = mask[i];
  }
  return out;
}

// Rows of [B, D U] of which no step counts become 0, as all outputs before the first one that does;
// the last states are those that were given.
Tensor zero_where_none_counts(const Tensor& last, const std::vector<bool>& mask) {
  std::vector<bool> counts(static_cast<std::size_t>(last.shape()[0]), false);
  const std::size_t steps = mask.size() / counts.size();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) counts[i / steps] = true;
  }
  return ops::select_rows(counts, last, Tensor(Array(last.dtype(), last.shape()).view()));
}

// The halves of two directions along the last axis as the layer's outputs.
std::vector<Tensor> merged(const std::string& merge, const Tensor& both) {
  if (merge == "concat") return {both};
  const std::int64_t width = both.shape().back() / 2;
  const std::int64_t axis = static_cast<std::int64_t>(both.shape().size()) - 1;
  std::vector<Tensor> halves = ops::split(both, axis, {width, width});
  if (merge == "none") return halves;
  if (merge == "mul") return {ops::multiply(halves[0], halves[1])};
  const Tensor sum = ops::add(halves[0], halves[1]);
  return {merge == "ave" ? ops::scale(sum, 0.5) : sum};
}

// One [B, width] of a state [B, L*D, width].
Tensor state_row(const Tensor& state, std::int64_t row) {
  const Tensor one = ops::slice(state, {.axis = 1, .begin = row, .size = 1});
  return ops::reshape(one, {state.shape()[0], state.shape()[2]});
}

/// What the call of a network returned.
struct NetworkRun {
  const RnnSpec& spec;
  RnnResult result;

  // Of its last layer, [B, D*O]: each direction's output behind its last step.
  Tensor last_of_states() const {
    const Tensor& h = result.state[0];
    const std::int64_t both = spec.num_dirs(), first = spec.num_pseudo_layers() - both;
    const Tensor rows = ops::slice(h, {.axis = 1, .begin = first, .size = both});
    return ops::reshape(rows, {h.shape()[0], both * h.shape()[2]});
  }
  // The same of outputs, where those of masked steps are not the last state.
  Tensor last_of_outputs() const {
    const Tensor& y = result.output;
    const std::int64_t batch = y.shape()[0], steps = y.shape()[1];
    const std::int64_t width = spec.hidden_size();
    std::vector<Tensor> parts;
    for (std::int64_t direction = 0; direction < spec.num_dirs(); ++direction) {
      const std::int64_t step = direction == 0 ? steps - 1 : 0;
      const Tensor there = ops::slice(y, {.axis = 1, .begin = step, .size = 1});
      parts.push_back(ops::slice(ops::reshape(there, {batch, y.shape()[2]}),
                                 {.axis = 1, .begin = direction * width, .size = width}));
    }
    return parts.size() == 1 ? parts[0] : ops::concat(parts, 1);
  }
  // h and c of each direction.
  void add_states(std::vector<GraphValue>* outputs) const {
    for (std::int64_t direction = 0; direction < spec.num_dirs(); ++direction) {
      for (const Tensor& state : result.state) {
        outputs->push_back({state_row(state, direction)});
      }
    }
  }
};

// [B, U] of each direction as [B, D, U].
Tensor joined_states(const std::vector<Tensor>& parts) {
  return ops::transpose_leading(ops::stack(parts));
}

// The option [L*D, width] as the state of each row, [B, L*D, width]; zeros where there is none.
Tensor option_state(const GraphStep& step, const char* option, DType dtype, Shape shape) {
  const auto& given = layer_option_as<std::vector<double>>(step.layer, option);
  Array wide(DType::kFloat64, std::move(shape));
  const std::span<double> values = wide.as<double>();
  for (std::size_t i = 0; i < values.size() && !given.empty(); ++i) {
    values[i] = given[i % given.size()];
  }
  return Tensor(cast(wide.view(), dtype).view());
}

// What the layer's options say.
std::vector<Tensor> option_states(const GraphStep& step, const RnnSpec& spec, std::int64_t batch) {
  const bool any = !layer_option_as<std::vector<double>>(step.layer, "initial_h").empty() ||
                   !layer_option_as<std::vector<double>>(step.layer, "initial_c").empty();
  if (!any) return {};
  const std::int64_t rows = spec.num_pseudo_layers();
  std::vector<Tensor> states{
      option_state(step, "initial_h", spec.dtype, {batch, rows, spec.hidden_size()})};
  if (spec.has_cell()) {
    states.push_back(option_state(step, "initial_c", spec.dtype, {batch, rows, spec.num_units}));
  }
  return states;
}

std::vector<Tensor> initial_state(const GraphStep& step, const RnnSpec& spec, std::int64_t batch) {
  if (step.inputs.size() > 1) {
    const std::size_t kinds = spec.has_cell() ? 2 : 1;
    std::vector<Tensor> states;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      std::vector<Tensor> parts;
      for (std::size_t i = 1 + kind; i < step.inputs.size(); i += kinds) {
        parts.push_back(step.inputs[i].x);
      }
      states.push_back(joined_states(parts));
    }
    return states;
  }
  // Another batch has no state yet.
  const bool kept = step.state && !step.state->empty() && (*step.state)[0].shape()[0] == batch;
  return kept ? *step.state : option_states(step, spec, batch);
}

}  // namespace

std::vector<GraphValue> compute_recurrent(const GraphStep& step) {
  auto& rnn = dynamic_cast<CudnnRnn&>(*step.made);
  const RnnSpec& spec = rnn.spec();
  const bool sequences = layer_option_as<bool>(step.layer, "return_sequences");
  const bool reverse = layer_option_as<bool>(step.layer, "reverse");
  const bool zeros = layer_option_as<bool>(step.layer, "zero_output_for_mask");
  const StepMask& mask = step.inputs[0].mask;
  Tensor x = step.inputs[0].x;
  const std::int64_t batch = x.shape()[0], steps = x.shape()[1];
  RnnCallOptions call;
  call.time_major = false;
  call.training = step.training;
  if (mask && steps > 0 && layer_option_as<bool>(step.layer, "uses_mask")) {
    call.flags.mask = reverse ? reversed_rows(*mask, steps) : *mask;
    call.flags.zero_output_for_mask = zeros;
  }
  if (reverse) x = ops::reverse_sequence(x, {}, false);
  // Gradients may be asked for with training off as well, as of any other layer.
  call.save = true;
  const std::vector<Tensor> before = initial_state(step, spec, batch);
  NetworkRun run{spec, rnn(x, before, call)};
  if (step.state) {
    step.state->clear();
    for (const Tensor& state : run.result.state) step.state->push_back(state.detached());
  }
  std::vector<GraphValue> outputs;
  const bool by_outputs = !call.flags.mask.empty() && zeros;
  Tensor output = sequences    ? run.result.output
                  : by_outputs ? run.last_of_outputs()
                               : run.last_of_states();
  if (!sequences && !before.empty() && !call.flags.mask.empty() && !zeros) {
    output = zero_where_none_counts(output, call.flags.mask);
  }
  const auto& merge = layer_option_as<std::string>(step.layer, "merge");
  for (Tensor& one : merged(merge, output)) {
    outputs.push_back({std::move(one), sequences ? mask : nullptr});
  }
  if (layer_option_as<bool>(step.layer, "return_state")) run.add_states(&outputs);
  return outputs;
}

}  // namespace openrnn::layers
