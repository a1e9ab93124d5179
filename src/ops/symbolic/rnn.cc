#include "ops/symbolic/rnn.h"

#include "openrnn/ops.h"
#include "openrnn/ops_part.h"
#include "openrnn/runtime.h"
#include "ops/support/support.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

void require_fit(const RnnSpec& spec, const RnnInputs& in, std::string_view name,
                 const Tensor& given, const TensorSpec& expected) {
  if (given.empty()) return;
  if (given.dtype() == expected.dtype && shapes_fit(given.shape(), expected.shape)) return;
  throw ArgumentError(message("[", in.call, "] ", name, " is ", dtype_name(given.dtype()),
                              " of shape ", to_string(given.shape()), ", expected ",
                              dtype_name(expected.dtype), " of shape ", to_string(expected.shape),
                              " for ", describe(spec)));
}

void check_params_spec(const RnnSpec& spec, const RnnInputs& in) {
  const Shape& shape = in.params.shape();
  const std::int64_t least = params_size(spec);
  if (in.params.dtype() == spec.dtype && shape.size() == 1 && (shape[0] < 0 || shape[0] >= least)) {
    return;
  }
  throw ArgumentError(message("[", in.call, "] params is ", dtype_name(in.params.dtype()),
                              " of shape ", to_string(shape), ", expected ", dtype_name(spec.dtype),
                              " of 1 dimension and at least ", least, " elements for ",
                              describe(spec)));
}

// What run_recorded_rnn reads.
Attributes attributes_of(const RnnSpec& spec, const RnnInputs& in, const ModelOfCall& model) {
  ArgumentWriter writer;
  writer.write(spec);
  writer.write(in.call);
  writer.write(in.time_major);
  writer.write(in.training);
  writer.write(in.save);
  writer.write(in.recompute);
  writer.write(dropout_key(in));
  writer.write(in.sequence_lengths.has_value());
  writer.write(in.sequence_lengths.value_or(std::vector<std::int32_t>{}));
  writer.write(model.device ? model.device->name() : std::string_view());
  writer.attributes.emplace_back(std::shared_ptr<CallState>(model.state));
  return std::move(writer.attributes);
}

}  // namespace

std::vector<Tensor> run_recorded_rnn(const std::vector<Tensor>& inputs,
                                     const Attributes& attributes, const Replay& replay) {
  ArgumentReader reader{inputs, attributes};
  RnnSpec spec;
  RnnInputs given;
  reader.read(spec);
  reader.read(given.call);
  reader.read(given.time_major);
  reader.read(given.training);
  reader.read(given.save);
  reader.read(given.recompute);
  reader.read(given.dropout);
  const bool has_lengths = reader.next<bool>();
  std::vector<std::int32_t> lengths;
  reader.read(lengths);
  if (has_lengths) given.sequence_lengths = std::move(lengths);
  const auto& place = reader.next<std::string>();
  const ModelOfCall model{.device = place.empty() ? nullptr : &device(place),
                          .state = std::dynamic_pointer_cast<CudnnModelState>(
                              reader.next<std::shared_ptr<CallState>>())};
  for (Tensor* tensor : {&given.x, &given.h0, &given.c0, &given.params, &given.lengths}) {
    reader.read(*tensor);
  }
  given.training = replay.training.value_or(given.training);
  // A function keeps the key that it was recorded with.
  const auto* const scope = PartScope::current();
  if (scope && !model.state && given.dropout.whole_batch == 0) {
    given.next_dropout = [key = given.dropout, part = scope->part()]() mutable {
      key.first_row = part.first_row;
      key.whole_batch = part.whole_batch;
      return key;
    };
  }
  const RnnOutputs out = run_model(spec, std::move(given), model);
  std::vector<Tensor> results{out.output, out.h};
  if (!out.c.empty()) results.push_back(out.c);
  return results;
}

std::vector<Tensor> canonical_tensors(const Tensor& params, const RnnSpec& spec) {
  const ParamsLayout layout(spec);
  if (params.is_symbolic()) {
    std::vector<TensorSpec> specs;
    for (const auto& regions : {layout.weights(), layout.biases()}) {
      for (const ParamRegion& region : regions) specs.push_back({params.dtype(), region.shape()});
    }
    return defer_call("params_to_canonical", std::move(specs), params, spec);
  }
  const CanonicalParams found = openrnn::params_to_canonical(layout, params.to_host().view());
  std::vector<Tensor> tensors;
  for (const Array& weight : found.weights) tensors.emplace_back(weight.view());
  for (const Array& bias : found.biases) tensors.emplace_back(bias.view());
  return tensors;
}

bool is_symbolic(const RnnInputs& in) {
  return any_symbolic(in.x, in.h0, in.c0, in.params, in.lengths);
}

DropoutKey dropout_key(const RnnInputs& in) {
  return in.next_dropout ? in.next_dropout() : in.dropout;
}

Tensor state_as(const Tensor& state, bool time_major) {
  const StateLayout other = time_major ? StateLayout::kBatchMajor : StateLayout::kTimeMajor;
  return state.state_layout() == other ? transpose_leading(state) : state;
}

RnnOutputs with_layout(RnnOutputs out, bool time_major) {
  const StateLayout layout = time_major ? StateLayout::kTimeMajor : StateLayout::kBatchMajor;
  out.h = std::move(out.h).with_state_layout(layout);
  if (!out.c.empty()) out.c = std::move(out.c).with_state_layout(layout);
  return out;
}

std::vector<TensorSpec> rnn_specs(const RnnSpec& spec, const Shape& x, bool time_major) {
  const std::int64_t batch = x[time_major ? 1 : 0];
  Shape y{x[0], x[1], spec.output_size()};
  Shape h = spec.h_shape(batch), c = spec.c_shape(batch);
  if (!time_major) {
    std::swap(h[0], h[1]);
    std::swap(c[0], c[1]);
  }
  std::vector<TensorSpec> specs{{spec.dtype, std::move(y)}, {spec.dtype, std::move(h)}};
  if (spec.has_cell()) specs.push_back({spec.dtype, std::move(c)});
  return specs;
}

RnnOutputs defer_rnn(const RnnSpec& spec, const RnnInputs& in, const ModelOfCall& model) {
  if (in.every) {
    throw UnsupportedError(message("[", in.call, "] every layer's outputs of a symbolic call, ",
                                   "expected values: ask when there are some"));
  }
  require_fit(spec, in, "input_data", in.x, {spec.dtype, {-1, -1, spec.input_size}});
  std::vector<TensorSpec> specs = rnn_specs(spec, in.x.shape(), in.time_major);
  require_fit(spec, in, "input_h", in.h0, specs[1]);
  if (spec.has_cell()) require_fit(spec, in, "input_c", in.c0, specs[2]);
  check_params_spec(spec, in);
  require_fit(spec, in, "sequence_lengths", in.lengths,
              {DType::kInt32, {in.x.shape()[in.time_major ? 1 : 0]}});
  const std::vector<Tensor> made =
      record_operation("rnn", {in.x, in.h0, in.c0, in.params, in.lengths}, std::move(specs),
                       attributes_of(spec, in, model));
  return with_layout({.output = made[0], .h = made[1], .c = spec.has_cell() ? made[2] : Tensor()},
                     in.time_major);
}

}  // namespace openrnn::ops
