// Calls of a recurrent layer: their checks, what is computed and what is recorded.
#include "base/message.h"
#include "openrnn/layers.h"
#include "ops/symbolic/rnn.h"

namespace openrnn::layers {
namespace {

// Arguments of a recorded call, except tensors.
Attributes attributes_of(const RnnCallOptions& call) {
  Attributes attributes{call.training, call.time_major, call.save, !call.lengths.empty(),
                        call.recompute};
  if (call.sequence_lengths) {
    attributes.emplace_back(
        std::vector<std::int64_t>(call.sequence_lengths->begin(), call.sequence_lengths->end()));
  }
  return attributes;
}

bool has_lengths(const Attributes& recorded) { return std::get<bool>(recorded.at(3)); }

RnnCallOptions options_in(const Attributes& recorded) {
  RnnCallOptions call;
  call.training = std::get<bool>(recorded.at(0));
  call.time_major = std::get<bool>(recorded.at(1));
  call.save = std::get<bool>(recorded.at(2));
  call.recompute = std::get<std::int64_t>(recorded.at(4));
  if (recorded.size() > 5) {
    const auto& lengths = std::get<std::vector<std::int64_t>>(recorded[5]);
    call.sequence_lengths.emplace(lengths.begin(), lengths.end());
  }
  return call;
}

void check_one_state(const Layer& layer, std::size_t index, const Tensor& given, Shape expected,
                     bool time_major) {
  if (!time_major) std::swap(expected[0], expected[1]);
  const char* const symbol = index == 0 ? "h" : "c";
  if (!shapes_fit(given.shape(), expected)) {
    throw ArgumentError(message("[", layer.name(), "] initial_state[", index, "] (", symbol,
                                ") has shape ", to_string(given.shape()), ", expected ",
                                to_string(expected),
                                time_major ? ", time-major" : ", batch-major"));
  }
  if (given.dtype() != layer.dtype()) {
    throw ArgumentError(message("[", layer.name(), "] initial_state[", index, "] (", symbol,
                                ") is ", dtype_name(given.dtype()), ", expected ",
                                dtype_name(layer.dtype())));
  }
}

}  // namespace

void CudnnRnn::check_inputs(const Tensor& inputs) const {
  const std::size_t rank = inputs.shape().size();
  if (rank != 3) {
    throw ArgumentError(message("[", name(), "] incompatible layer input: found ndim=", rank,
                                " with shape ", to_string(inputs.shape()), ", expected ndim=3"));
  }
  if (spec_ && !dims_fit(inputs.shape()[2], (*spec_)->input_size)) {
    throw ArgumentError(message("[", name(), "] incompatible layer input: axis -1 of shape ",
                                to_string(inputs.shape()), ", expected axis -1 to have value ",
                                (*spec_)->input_size));
  }
  if (inputs.dtype() != dtype()) {
    throw ArgumentError(message("[", name(), "] inputs are ", dtype_name(inputs.dtype()),
                                ", expected ", dtype_name(dtype())));
  }
}

void CudnnRnn::check_state(const std::vector<Tensor>& state, std::int64_t batch,
                           bool time_major) const {
  if (state.empty()) return;
  const std::vector<Shape> shapes = state_shape(batch);
  if (state.size() != shapes.size()) {
    throw ArgumentError(message("[", name(), "] an initial_state of ", state.size(),
                                " tensors, expected ", shapes.size(),
                                network().has_cell() ? ": (h, c)" : ": (h,)"));
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    check_one_state(*this, i, state[i], shapes[i], time_major);
  }
}

void CudnnRnn::check_lengths(const Shape& inputs, const RnnCallOptions& call) const {
  const bool known = !call.lengths.empty() && !call.lengths.is_symbolic();
  if (!call.sequence_lengths && !known) return;
  const std::int64_t max_time = inputs[call.time_major ? 0 : 1];
  const std::int64_t batch = inputs[call.time_major ? 1 : 0];
  const std::vector<std::int32_t> lengths =
      known ? *ops::lengths_of(name(), call.lengths) : *call.sequence_lengths;
  if (batch >= 0 && static_cast<std::int64_t>(lengths.size()) != batch) {
    throw ArgumentError(message("[", name(), "] sequence_lengths has ", lengths.size(),
                                " elements, expected ", batch, ", one a row of the batch"));
  }
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    if (lengths[row] >= 0 && (max_time < 0 || lengths[row] <= max_time)) continue;
    throw ArgumentError(message("[", name(), "] sequence_lengths[", row, "] is ", lengths[row],
                                ", expected 0 to ", max_time < 0 ? "max_time" : message(max_time)));
  }
}

// `given` is the input, then the initial state if there is one.
ops::RnnOutputs CudnnRnn::compute(const std::vector<Tensor>& given, const RnnCallOptions& call,
                                  const Tensor& lengths) {
  ops::RnnInputs in{.x = given[0], .params = kernel_.read(), .call = name()};
  if (given.size() > 1) in.h0 = given[1];
  if (given.size() > 2) in.c0 = given[2];
  in.sequence_lengths = call.sequence_lengths;
  in.lengths = lengths;
  in.flags = call.flags;
  in.time_major = call.time_major;
  in.training = call.training;
  in.save = call.save;
  in.recompute = call.recompute;
  in.every = call.every;
  if (call.training && network().draws_masks()) {
    in.next_dropout = [this] { return dropout_.next(); };
  }
  return ops::rnn(*spec_, in, &cache_);
}

std::vector<Tensor> CudnnRnn::compute_call(const Attributes& recorded,
                                           const std::vector<Tensor>& inputs,
                                           const Replay& replay) {
  RnnCallOptions call = options_in(recorded);
  call.training = replay.training.value_or(call.training);
  std::vector<Tensor> values = inputs;
  Tensor lengths;
  if (has_lengths(recorded)) {
    lengths = std::move(values.back());
    values.pop_back();
  }
  for (std::size_t i = 1; i < values.size(); ++i) {
    values[i] = ops::state_as(values[i], call.time_major);
  }
  check_state(std::vector<Tensor>(values.begin() + 1, values.end()),
              values[0].shape()[call.time_major ? 1 : 0], call.time_major);
  ops::RnnOutputs out = compute(values, call, lengths);
  std::vector<Tensor> results{std::move(out.output), std::move(out.h)};
  if (network().has_cell()) results.push_back(std::move(out.c));
  return results;
}

RnnResult CudnnRnn::record(const std::vector<Tensor>& given, const RnnCallOptions& call) {
  if (call.flags.any()) {
    throw UnsupportedError(message("[", name(), "] mask and reset of a symbolic call, expected ",
                                   "values, or sequence_lengths"));
  }
  if (call.every) {
    throw UnsupportedError(message("[", name(), "] every layer's outputs of a symbolic call, ",
                                   "expected values: ask when there are some"));
  }
  // The lengths come last, so that a model can be given other ones.
  std::vector<Tensor> inputs = given;
  if (!call.lengths.empty()) inputs.push_back(call.lengths);
  std::vector<Tensor> made = record_node(
      inputs, ops::rnn_specs(*spec_, given[0].shape(), call.time_major), {attributes_of(call)});
  const StateLayout layout = call.time_major ? StateLayout::kTimeMajor : StateLayout::kBatchMajor;
  RnnResult result{.output = std::move(made[0])};
  for (std::size_t i = 1; i < made.size(); ++i) {
    result.state.push_back(std::move(made[i]).with_state_layout(layout));
  }
  return result;
}

RnnResult CudnnRnn::operator()(const Tensor& inputs, const std::vector<Tensor>& initial_state,
                               const RnnCallOptions& call) {
  check_inputs(inputs);
  const bool symbolic = inputs.is_symbolic() || any_symbolic(initial_state);
  if (!symbolic && !call.lengths.empty() && !call.lengths.is_symbolic()) {
    // To the host once, for the check and the operation.
    RnnCallOptions on_host = call;
    on_host.sequence_lengths = ops::lengths_of(name(), call.lengths);
    on_host.lengths = {};
    return (*this)(inputs, initial_state, on_host);
  }
  std::vector<Tensor> given{inputs};
  for (const Tensor& state : initial_state) {
    given.push_back(ops::state_as(state, call.time_major));
  }
  check_state({given.begin() + 1, given.end()}, inputs.shape()[call.time_major ? 1 : 0],
              call.time_major);
  // Before anything is built or recorded, and before dropout advances.
  check_lengths(inputs.shape(), call);
  if (!symbolic) {
    ops::check_flags(name(), call.flags, inputs.shape()[call.time_major ? 0 : 1],
                     inputs.shape()[call.time_major ? 1 : 0]);
  }
  // Before variables are made, so that missing arithmetic leaves no variables.
  if (!built() && network().compute.math != Math::kFloat32) math_kind();
  ensure_built(inputs.shape(), call.scope);
  require_class_build();
  begin_call(given);
  RnnResult result;
  if (symbolic || call.lengths.is_symbolic()) {
    result = record(given, call);
  } else {
    ops::RnnOutputs out = compute(given, call, call.lengths);
    result = {std::move(out.output),
              {std::move(out.h)},
              std::move(out.layer_outputs),
              std::move(out.layer_cells)};
    if (network().has_cell()) result.state.push_back(std::move(out.c));
  }
  if (activity_regularizer()) {
    std::vector<Tensor> outputs{result.output};
    outputs.insert(outputs.end(), result.state.begin(), result.state.end());
    end_call(given, outputs);
  }
  return result;
}

}  // namespace openrnn::layers
