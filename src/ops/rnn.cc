#include "ops/symbolic/rnn.h"

#include "openrnn/ops_rnn.h"
#include "openrnn/runtime.h"
#include "ops/dropout.h"
#include "ops/gradients/rnn.h"
#include "ops/masks_around.h"
#include "ops/segments/segments.h"
#include "ops/support/support.h"

namespace openrnn::ops {
namespace {

void require_shape(const RnnSpec& spec, const RnnInputs& in, std::string_view name,
                   const Tensor& tensor, const Shape& expected) {
  if (tensor.empty()) return;
  if (tensor.shape() != expected) {
    throw ArgumentError(message("[", in.call, "] ", name, " has shape ", to_string(tensor.shape()),
                                ", expected ", to_string(expected), " for ", describe(spec),
                                in.time_major ? ", time-major" : ", batch-major"));
  }
  require_same_kind(in.call, name, in.x, tensor);
}

void check_x(const RnnSpec& spec, const RnnInputs& in) {
  require_floating(in.call, "input_data", in.x);
  const Shape& shape = in.x.shape();
  if (shape.size() != 3) {
    throw ArgumentError(
        message("[", in.call, "] input_data has rank ", shape.size(), " (shape ", to_string(shape),
                "), expected rank 3: ", in.time_major ? "[time, batch, " : "[batch, time, ",
                spec.input_size, "]"));
  }
  if (shape[2] != spec.input_size) {
    throw ArgumentError(message("[", in.call, "] input_data has shape ", to_string(shape),
                                ", expected a last dimension of ", spec.input_size));
  }
  if (in.x.dtype() != spec.dtype) {
    throw ArgumentError(message("[", in.call, "] input_data is ", dtype_name(in.x.dtype()),
                                ", expected ", dtype_name(spec.dtype)));
  }
}

void check_lengths(const RnnInputs& in, std::int64_t max_time, std::int64_t batch) {
  if (!in.sequence_lengths) return;
  const std::vector<std::int32_t>& lengths = *in.sequence_lengths;
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    throw ArgumentError(message("[", in.call, "] sequence_lengths has ", lengths.size(),
                                " elements, expected ", batch, ", one a row of the batch"));
  }
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    if (lengths[row] < 0 || lengths[row] > max_time) {
      throw ArgumentError(message("[", in.call, "] sequence_lengths[", row, "] is ", lengths[row],
                                  ", expected 0 to ", max_time));
    }
  }
}

void check_inputs(const ValidSpec& valid, const RnnInputs& in) {
  const RnnSpec& spec = valid;
  check_x(spec, in);
  const std::int64_t max_time = in.x.shape()[in.time_major ? 0 : 1];
  const std::int64_t batch = in.x.shape()[in.time_major ? 1 : 0];
  Shape h = spec.h_shape(batch), c = spec.c_shape(batch);
  if (!in.time_major) {
    std::swap(h[0], h[1]);
    std::swap(c[0], c[1]);
  }
  require_shape(spec, in, "input_h", in.h0, h);
  if (spec.has_cell()) {
    require_shape(spec, in, "input_c", in.c0, c);
  } else if (!in.c0.empty()) {
    throw ArgumentError(
        message("[", in.call, "] input_c is given, expected none for ", to_string(spec.mode)));
  }
  if (in.params.empty()) {
    throw ArgumentError(
        message("[", in.call, "] params is empty, expected ", params_size(valid), " elements"));
  }
  check_params(in.call, spec, {in.params.value().data(), in.params.dtype(), in.params.shape()},
               params_size(valid));
  require_same_kind(in.call, "params", in.x, in.params);
  check_lengths(in, max_time, batch);
  check_flags(in.call, in.flags, max_time, batch);
}

// Rounding of stored weights has no gradient.
void require_trainable(const RnnSpec& spec, const RnnInputs& in) {
  if (spec.compute.weights_dtype == WeightsDType::kNone) return;
  throw UnsupportedError(message(
      "[", in.call, "] weights_dtype is '", to_string(spec.compute.weights_dtype),
      "', which is for inference, in a call whose gradient may be asked for; expected a call ",
      "outside of every tape, or a layer without it to train and a second one of the same ",
      "variables for inference: with_arithmetic makes it"));
}

// Whether the call keeps what gradients need.
bool saves(const RnnInputs& in) {
  return (in.training || in.save) && recording({in.x, in.h0, in.c0, in.params});
}

// All that refuses a call, before it draws a key or runs anything.
const Engine& check_call(const ValidSpec& valid, const RnnInputs& in) {
  check_inputs(valid, in);
  if (in.training && in.next_dropout && valid->draws_masks()) check_rows_of_part(in);
  const Engine& engine = choose_engine(valid, in.x.device());
  if (saves(in)) {
    require_trainable(valid, in);
    check_recompute(engine, in.recompute);
  }
  return engine;
}

gradients::SavedCall describe_call(const Engine& engine, const ValidSpec& spec, const RnnInputs& in,
                                   const DeviceArray& h, const DeviceArray& c) {
  return {.call = in.call,
          .engine = &engine,
          .device = &in.x.value().device(),
          .forward = nullptr,
          .spec = spec,
          .x_shape = in.x.shape(),
          .h_shape = h.shape(),
          .c_shape = c.shape(),
          .params_shape = in.params.shape(),
          .time_major = in.time_major,
          .training = in.training,
          .recomputes = in.recompute != 0,
          .lengths = in.sequence_lengths,
          .dropout = {}};
}

RnnInputs brought_together(RnnInputs in) {
  std::array<Tensor, 4> tensors = together(in.call, in.x, in.h0, in.c0, in.params);
  in.x = std::move(tensors[0]);
  in.h0 = std::move(tensors[1]);
  in.c0 = std::move(tensors[2]);
  in.params = std::move(tensors[3]);
  return in;
}

const void* data_or_null(const Tensor& tensor) {
  return tensor.empty() ? nullptr : tensor.value().data();
}

std::vector<DeviceArray> make_outputs(const RnnSpec& spec, const RnnInputs& in) {
  const std::int64_t batch = in.x.shape()[in.time_major ? 1 : 0];
  Shape y = in.x.shape(), h = spec.h_shape(batch), c = spec.c_shape(batch);
  y[2] = spec.output_size();
  if (!in.time_major) {
    std::swap(h[0], h[1]);
    std::swap(c[0], c[1]);
  }
  std::vector<DeviceArray> outputs;
  outputs.push_back(make(in.x, spec.dtype, std::move(y)));
  outputs.push_back(make(in.x, spec.dtype, std::move(h)));
  if (spec.has_cell()) outputs.push_back(make(in.x, spec.dtype, std::move(c)));
  return outputs;
}

// One array a layer, and the pointers that an engine takes.
struct LayerArrays {
  std::vector<DeviceArray> arrays;
  std::vector<void*> pointers;

  LayerArrays(const RnnSpec& spec, const RnnInputs& in, bool wanted, std::int64_t width) {
    for (std::int64_t l = 0; wanted && l < spec.num_layers; ++l) {
      Shape shape = in.x.shape();
      shape[2] = width;
      arrays.push_back(make(in.x, spec.dtype, std::move(shape)));
      pointers.push_back(arrays.back().mutable_data());
    }
  }
  void* const* data() const { return pointers.empty() ? nullptr : pointers.data(); }
  std::vector<Tensor> tensors() const { return {arrays.begin(), arrays.end()}; }
};

// One call on values of one device.
RnnOutputs run(const ValidSpec& valid, const RnnInputs& in, PackedCache* cache) {
  const RnnSpec& spec = valid;
  const Engine& engine = check_call(valid, in);
  const std::vector<Tensor> inputs{in.x, in.h0, in.c0, in.params};
  const bool tracked = recording(inputs), keep = saves(in);
  PackedCache own;
  std::vector<DeviceArray> out = make_outputs(spec, in);
  const DeviceArray no_cell;
  const LayerArrays layer_outputs(spec, in, in.every, spec.output_size());
  const LayerArrays layer_cells(spec, in, in.every && spec.has_cell(),
                                spec.num_dirs() * spec.num_units);
  const ForwardArgs args{
      .params =
          (cache ? cache : &own)
              ->get(engine, valid, in.params, keep ? PackFor::kTraining : PackFor::kInference),
      .max_time = in.x.shape()[in.time_major ? 0 : 1],
      .batch = in.x.shape()[in.time_major ? 1 : 0],
      .time_major = in.time_major,
      .sequence_lengths = in.sequence_lengths ? in.sequence_lengths->data() : nullptr,
      .x = in.x.value().data(),
      .h0 = data_or_null(in.h0),
      .c0 = data_or_null(in.c0),
      .y = out[0].mutable_data(),
      .hn = out[1].mutable_data(),
      .cn = spec.has_cell() ? out[2].mutable_data() : nullptr,
      .layer_outputs = layer_outputs.data(),
      .layer_cells = layer_cells.data(),
      .training = in.training,
      .dropout = dropout_key(in),
      .recompute = keep ? in.recompute : 0};
  std::vector<Tensor> tensors;
  if (tracked) {
    gradients::SavedCall saved =
        describe_call(engine, valid, in, out[1], spec.has_cell() ? out[2] : no_cell);
    saved.dropout = args.dropout;
    if (keep) saved.forward = engine.forward_saving(args);
    if (!keep) engine.forward(args);
    tensors = gradients::record_call(inputs, std::move(out), std::move(saved));
  } else {
    engine.forward(args);
    tensors = record(in.call, inputs, std::move(out), nullptr);
  }
  return with_layout({.output = std::move(tensors[0]),
                      .h = std::move(tensors[1]),
                      .c = spec.has_cell() ? std::move(tensors[2]) : Tensor(),
                      .layer_outputs = layer_outputs.tensors(),
                      .layer_cells = layer_cells.tensors()},
                     in.time_major);
}

}  // namespace

RnnOutputs rnn(const ValidSpec& spec, const RnnInputs& in, PackedCache* cache) {
  const StateLayout other = in.time_major ? StateLayout::kBatchMajor : StateLayout::kTimeMajor;
  if (in.h0.state_layout() == other || in.c0.state_layout() == other) {
    RnnInputs given = in;
    given.h0 = state_as(in.h0, in.time_major);
    given.c0 = state_as(in.c0, in.time_major);
    return rnn(spec, given, cache);
  }
  if (is_symbolic(in)) {
    if (in.flags.any()) {
      throw UnsupportedError(message("[", in.call, "] mask and reset of a symbolic call, expected ",
                                     "values, or sequence_lengths"));
    }
    return defer_rnn(spec, in, {});
  }
  if (!in.lengths.empty()) {
    RnnInputs given = in;
    given.sequence_lengths = lengths_of(in.call, in.lengths);
    given.lengths = {};
    return rnn(spec, given, cache);
  }
  if (apart(in.x, in.h0, in.c0, in.params)) return rnn(spec, brought_together(in), cache);
  if (!spec->training.drops_around() && !in.flags.any()) return run(spec, in, cache);
  check_call(spec, in);
  if (!spec->training.drops_around()) {
    return run_in_segments(spec, in,
                           [&](const RnnInputs& given) { return rnn(spec, given, cache); });
  }
  const DropoutKey key = in.training && in.next_dropout ? in.next_dropout() : in.dropout;
  return run_with_masks(spec, in, key, [cache](const ValidSpec& inside, const RnnInputs& given) {
    return rnn(inside, given, cache);
  });
}

}  // namespace openrnn::ops
