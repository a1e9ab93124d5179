// The differentiable operations. The package's functions give them signatures and defaults.
#include <atomic>

#include "base/message.h"
#include "openrnn/ops.h"
#include "openrnn/train_optimizer.h"
#include "python/tensor/members.h"

namespace openrnn::python {
namespace {

using Unary = Tensor (*)(const Tensor&);
void bind_unary(nb::module_& m, const char* name, Unary function) {
  m.def(
      name, [name, function](nb::handle x) { return function(as_given(x, name)); }, "x"_any);
}

void bind_elementwise(nb::module_& m) {
  bind_unary(m, "relu", ops::relu);
  bind_unary(m, "tanh", ops::tanh);
  bind_unary(m, "sigmoid", ops::sigmoid);
  bind_unary(m, "exp", ops::exp);
  bind_unary(m, "negative", ops::negate);
  bind_unary(m, "square", ops::square);
  bind_unary(m, "sqrt", ops::sqrt);
  bind_unary(m, "abs", ops::absolute);
  bind_unary(m, "transpose_leading", ops::transpose_leading);
  m.def(
      "combine",
      [](int op, nb::handle a, nb::handle b) { return combine(static_cast<Arithmetic>(op), a, b); },
      "op"_a, "a"_any, "b"_any);
  m.def("would_record", &would_record, "value"_any);
  m.def(
      "add_n", [](nb::handle terms) { return ops::add_n(as_tensors(terms, {.call = "add_n"})); },
      "terms"_any);
  m.def(
      "cast",
      [](nb::handle x, nb::handle dtype) {
        const Tensor given = as_given(x, "cast");
        const DType wanted = as_dtype(dtype);
        return given.dtype() == wanted ? given : ops::cast(given, wanted);
      },
      "x"_any, "dtype"_any);
  m.def(
      "convert",
      [](nb::handle value, nb::handle dtype, nb::handle device) {
        return make_tensor(value, dtype, as_device(device));
      },
      "value"_any, "dtype"_any, "device"_any = nb::none());
}

void bind_training(nb::module_& m) {
  m.def(
      "stop_gradient", [](nb::handle x) { return as_given(x, "stop_gradient").detached(); },
      "x"_any);
  m.def(
      "dropout",
      [](nb::handle x, double rate, std::optional<std::int64_t> seed) {
        return ops::next_dropout(as_given(x, "dropout"), rate, [seed] {
          // Without a seed, calls differ by their number.
          static std::atomic<std::uint64_t> calls{0};
          const auto [first, second] = Graph::current().op_seeds(seed);
          return DropoutKey{
              .seed = static_cast<std::uint64_t>(first) << 32U | static_cast<std::uint64_t>(second),
              .call = calls++};
        });
      },
      "x"_any, "rate"_a, "seed"_a.none());
  m.def(
      "l1",
      [](nb::handle x, double factor) { return ops::l1_regularization(as_given(x, "l1"), factor); },
      "x"_any, "factor"_a);
  m.def(
      "l2",
      [](nb::handle x, double factor) { return ops::l2_regularization(as_given(x, "l2"), factor); },
      "x"_any, "factor"_a);
}

void bind_products(nb::module_& m) {
  m.def(
      "matmul",
      [](nb::handle a, nb::handle b, bool transpose_a, bool transpose_b) {
        Tensor left = as_given(a, "matmul"), right = as_given(b, "matmul");
        return unlocked([&] { return matmul(left, right, transpose_a, transpose_b); });
      },
      "a"_any, "b"_any, "transpose_a"_a, "transpose_b"_a);
  m.def(
      "embedding_lookup",
      [](nb::handle table, nb::handle ids) {
        return ops::embedding_lookup(as_given(table, "embedding_lookup"),
                                     as_indices(ids, "embedding_lookup"));
      },
      "table"_any, "ids"_any);
  m.def(
      "one_hot",
      [](nb::handle ids, std::int64_t depth, nb::handle dtype) {
        return ops::one_hot(as_indices(ids, "one_hot"), depth, as_dtype(dtype));
      },
      "ids"_any, "depth"_a, "dtype"_any);
  m.def(
      "cross_entropy_rows",
      [](nb::handle logits, nb::handle labels) {
        return ops::softmax_cross_entropy_rows(as_given(logits, "softmax_cross_entropy"),
                                               as_indices(labels, "softmax_cross_entropy"));
      },
      "logits"_any, "labels"_any);
  m.def(
      "cross_entropy",
      [](nb::handle logits, nb::handle labels) {
        return ops::softmax_cross_entropy(as_given(logits, "softmax_cross_entropy"),
                                          as_indices(labels, "softmax_cross_entropy"));
      },
      "logits"_any, "labels"_any);
  m.def(
      "mean_squared_error",
      [](nb::handle a, nb::handle b) {
        const Tensor left = as_given(a, "mean_squared_error");
        return ops::mean_squared_error(left, as_operand(b, left));
      },
      "a"_any, "b"_any);
}

void bind_shapes(nb::module_& m) {
  m.def(
      "reshape",
      [](nb::handle x, nb::handle shape) {
        return ops::reshape(as_given(x, "reshape"), as_shape("reshape", shape));
      },
      "x"_any, "shape"_any);
  m.def(
      "concat",
      [](nb::handle parts, std::int64_t axis) {
        return ops::concat(as_tensors(parts, {.call = "concat"}), axis);
      },
      "parts"_any, "axis"_a);
  m.def(
      "split",
      [](nb::handle x, std::int64_t axis, const std::vector<std::int64_t>& sizes) {
        return ops::split(as_given(x, "split"), axis, sizes);
      },
      "x"_any, "axis"_a, "sizes"_a);
  m.def(
      "slice_axis",
      [](nb::handle x, std::int64_t axis, std::int64_t begin, std::int64_t size) {
        return ops::slice(as_given(x, "slice"), {.axis = axis, .begin = begin, .size = size});
      },
      "x"_any, "axis"_a, "begin"_a, "size"_a);
  m.def(
      "stack", [](nb::handle parts) { return ops::stack(as_tensors(parts, {.call = "stack"})); },
      "parts"_any);
  m.def(
      "unstack", [](nb::handle x) { return ops::unstack(as_given(x, "unstack")); }, "x"_any);
  m.def(
      "reverse_sequence",
      [](nb::handle x, nb::handle lengths, bool time_major) {
        const auto given = as_lengths("reverse_sequence", lengths);
        return ops::reverse_sequence(as_given(x, "reverse_sequence"),
                                     given.value_or(std::vector<std::int32_t>{}), time_major);
      },
      "x"_any, "lengths"_any, "time_major"_a);
}

std::pair<std::vector<std::optional<Tensor>>, Tensor> clip(nb::handle tensors, double clip_norm) {
  std::vector<DeviceArray> arrays;
  for (const nb::handle one : tensors) {
    const Tensor given = as_optional_tensor(one, {.call = "clip_by_global_norm"});
    arrays.push_back(given.empty() ? DeviceArray() : given.value());
  }
  const double norm = train::clip_by_global_norm(arrays, clip_norm);
  std::vector<std::optional<Tensor>> clipped;
  for (const DeviceArray& array : arrays) {
    clipped.push_back(array.empty() ? std::nullopt : std::optional(Tensor(array)));
  }
  const float value = static_cast<float>(norm);
  return {std::move(clipped), Tensor(ConstArrayView{&value, DType::kFloat32, {}})};
}

}  // namespace

void bind_operations(nb::module_& m) {
  bind_elementwise(m);
  bind_training(m);
  bind_products(m);
  bind_shapes(m);
  bind_array_functions(m);
  m.def("clip_by_global_norm", &clip, "tensors"_any, "clip_norm"_a);
}

}  // namespace openrnn::python
