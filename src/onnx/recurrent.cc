#include "onnx/recurrent.h"

#include <cstring>

#include "base/message.h"
#include "mapping/onnx/values/attributes.h"

namespace openrnn::onnx {

using mapping::MemoryBudget;
using mapping::OnnxCell;
using mapping::OnnxWeights;

namespace {

constexpr std::size_t kLengths = 4, kInitialH = 5, kInitialC = 6, kPeepholes = 7;

void require(const KernelCall& call, std::size_t index, const char* name, DType dtype,
             const Shape& shape) {
  const Array& found = call.input(index);
  if (found.dtype() == dtype && found.shape() == shape) return;
  throw ArgumentError(message(name, " is ", dtype_name(found.dtype()), " ",
                              to_string(found.shape()), ", expected ", dtype_name(dtype), " ",
                              to_string(shape)));
}

// Each row's first steps backwards, the rest as they are. x is [T, B, ..].
Array with_steps_reversed(const Array& x, const std::int32_t* lengths) {
  const std::int64_t steps = x.shape()[0], batch = x.shape()[1];
  Array out = x;
  if (x.size() == 0) return out;
  const std::size_t bytes = x.size_bytes() / static_cast<std::size_t>(steps * batch);
  for (std::int64_t row = 0; row < batch; ++row) {
    const std::int64_t length = lengths ? lengths[row] : steps;
    for (std::int64_t t = 0; t < length; ++t) {
      const auto from = static_cast<std::size_t>(t * batch + row) * bytes;
      const auto to = static_cast<std::size_t>((length - 1 - t) * batch + row) * bytes;
      std::memcpy(static_cast<char*>(out.data()) + to, static_cast<const char*>(x.data()) + from,
                  bytes);
    }
  }
  return out;
}

Array transposed(const Array& x, const std::vector<std::int64_t>& perm) {
  MemoryBudget free;
  return mapping::transposed(x, perm, &free);
}

// One call of a session, all arrays time-major.
struct Call {
  const OnnxCell& cell;
  Array x;
  const Array* lengths = nullptr;
  std::optional<Array> h0 = {}, c0 = {};

  std::int64_t steps() const { return x.shape()[0]; }
  std::int64_t batch() const { return x.shape()[1]; }
  const std::int32_t* length_values() const {
    return lengths ? lengths->as<std::int32_t>().data() : nullptr;
  }
  Shape state_shape() const {
    const Shape shape{cell.part ? 2 : cell.spec.num_dirs(), batch(), cell.spec.num_units};
    return cell.batch_major ? Shape{shape[1], shape[0], shape[2]} : shape;
  }
};

void check_lengths(const Call& call) {
  for (std::int64_t row = 0; call.lengths && row < call.batch(); ++row) {
    const std::int32_t length = call.length_values()[row];
    if (length >= 0 && length <= call.steps()) continue;
    throw ArgumentError(
        message("sequence_lens has ", length, " at row ", row, ", expected 0 to ", call.steps()));
  }
}

Call arranged(const KernelCall& kernel, const OnnxCell& cell) {
  const Array& x = kernel.input(0);
  const RnnSpec& spec = cell.spec;
  if (x.shape().size() != 3 || x.shape()[2] != spec.input_size || x.dtype() != spec.dtype) {
    throw ArgumentError(message("X is ", dtype_name(x.dtype()), " ", to_string(x.shape()),
                                ", expected ", dtype_name(spec.dtype),
                                " of three dimensions, the last ", spec.input_size));
  }
  Call call{.cell = cell, .x = cell.batch_major ? transposed(x, {1, 0, 2}) : x};
  if ((call.lengths = kernel.optional(kLengths))) {
    require(kernel, kLengths, "sequence_lens", DType::kInt32, {call.batch()});
  }
  check_lengths(call);
  const auto state = [&](std::size_t index, const char* name) -> std::optional<Array> {
    if (!kernel.optional(index)) return std::nullopt;
    require(kernel, index, name, spec.dtype, call.state_shape());
    const Array& given = kernel.input(index);
    Array all = cell.batch_major ? transposed(given, {1, 0, 2}) : given;
    if (!cell.part) return all;
    MemoryBudget free;
    return mapping::sliced(all, 0, {.start = *cell.part, .end = *cell.part + 1}, &free);
  };
  call.h0 = state(kInitialH, "initial_h");
  if (spec.is_lstm()) call.c0 = state(kInitialC, "initial_c");
  if (cell.reverse) call.x = with_steps_reversed(call.x, call.length_values());
  return call;
}

// Y, Y_h and Y_c as ONNX lays them out.
std::vector<Array> run_call(const Call& call, std::shared_ptr<const PackedModel> model) {
  const RnnSpec& spec = call.cell.spec;
  const std::int64_t steps = call.steps(), batch = call.batch(), dirs = spec.num_dirs();
  Array y(spec.dtype, {steps, batch, spec.output_size()});
  Array h(spec.dtype, spec.h_shape(batch)), c;
  if (spec.is_lstm()) c = Array(spec.dtype, spec.c_shape(batch));
  InferenceSession session(std::move(model), {.max_threads = 0});
  session.run({.params = nullptr,
               .max_time = steps,
               .batch = batch,
               .sequence_lengths = call.length_values(),
               .x = call.x.data(),
               .h0 = call.h0 ? call.h0->data() : nullptr,
               .c0 = call.c0 ? call.c0->data() : nullptr,
               .y = y.data(),
               .hn = h.data(),
               .cn = spec.is_lstm() ? c.data() : nullptr,
               .dropout = {}});
  if (call.cell.reverse) y = with_steps_reversed(y, call.length_values());
  y = std::move(y).reshaped({steps, batch, dirs, spec.num_units});
  const bool batch_major = call.cell.batch_major;
  const std::vector<std::int64_t> perm =
      batch_major ? std::vector<std::int64_t>{1, 0, 2, 3} : std::vector<std::int64_t>{0, 2, 1, 3};
  std::vector<Array> outputs;
  outputs.push_back(transposed(y, perm));
  outputs.push_back(batch_major ? transposed(h, {1, 0, 2}) : std::move(h));
  if (spec.is_lstm()) outputs.push_back(batch_major ? transposed(c, {1, 0, 2}) : std::move(c));
  return outputs;
}

}  // namespace

OnnxWeights weights_of(const KernelCall& call) {
  OnnxWeights weights{.w = call.input(1), .r = call.input(2)};
  if (const Array* b = call.optional(3)) weights.b = *b;
  if (const Array* p = call.optional(kPeepholes)) weights.p = *p;
  return weights;
}

RecurrentKernel::RecurrentKernel(const OnnxNode& node)
    : node_(&node), cells_(mapping::cells_of_node(node)) {}

std::vector<RecurrentKernel::Packed> RecurrentKernel::packed(const OnnxNode& node,
                                                             const OnnxWeights& weights) const {
  std::vector<Packed> all;
  for (const OnnxCell& cell : cells_) {
    Packed& one = all.emplace_back(Packed{.cell = cell, .model = nullptr});
    const Array params = mapping::params_of_node(node, views_of(weights), &one.cell);
    one.model = std::make_shared<const PackedModel>(one.cell.spec, params.view());
  }
  return all;
}

void RecurrentKernel::pack(const OnnxWeights& weights) { packed_ = packed(*node_, weights); }

std::vector<Array> RecurrentKernel::compute(const KernelCall& call) const {
  const std::vector<Packed> now = packed_.empty() ? packed(call.node, weights_of(call)) : packed_;
  std::vector<Array> outputs = run_call(arranged(call, now[0].cell), now[0].model);
  if (now.size() == 1) return outputs;
  const std::vector<Array> second = run_call(arranged(call, now[1].cell), now[1].model);
  const bool batch_major = now[0].cell.batch_major;
  for (std::size_t n = 0; n < outputs.size(); ++n) {
    // Y is [B, T, D, U] or [T, D, B, U], a state [B, D, U] or [D, B, U].
    const std::size_t axis = (n == 0 ? 1 : 0) + (batch_major ? 1 : 0);
    MemoryBudget free;
    outputs[n] = mapping::concatenated({&outputs[n], &second[n]}, axis, &free);
  }
  return outputs;
}

}  // namespace openrnn::onnx
