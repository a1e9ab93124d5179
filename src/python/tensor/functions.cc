// Functions with NumPy's shapes. The package's functions give them signatures and defaults.
#include "base/message.h"
#include "python/tensor/members.h"

namespace openrnn::python {
namespace {

void bind_two(nb::module_& m, const char* name, Compare function) {
  m.def(
      name,
      [function](nb::handle a, nb::handle b) {
        const std::array<Tensor, 2> in = as_operands(a, b);
        return function(in[0], in[1]);
      },
      "x"_any, "y"_any);
}

void bind_reduce(nb::module_& m, const char* name, Reduce function) {
  m.def(
      name,
      [name, function](nb::handle x, nb::handle axis, bool keepdims) {
        const Tensor given = as_given(x, name);
        return function(given, as_reduction(name, axis, keepdims));
      },
      "x"_any, "axis"_any, "keepdims"_a);
}

// Without an axis a sum is rounded once, and recorded under the name that it always had.
Tensor sum_along(const Tensor& x, const ops::ReduceOptions& options) {
  return options.axes || options.keepdims ? ops::reduce_sum(x, options) : ops::reduce_sum(x);
}
Tensor mean_along(const Tensor& x, const ops::ReduceOptions& options) {
  return options.axes || options.keepdims ? ops::reduce_mean(x, options) : ops::reduce_mean(x);
}

void bind_array_elementwise(nb::module_& m) {
  bind_two(m, "maximum", ops::maximum);
  bind_two(m, "minimum", ops::minimum);
  bind_two(m, "equal", ops::equal);
  bind_two(m, "not_equal", ops::not_equal);
  bind_two(m, "less", ops::less);
  bind_two(m, "less_equal", ops::less_equal);
  bind_two(m, "greater", ops::greater);
  bind_two(m, "greater_equal", ops::greater_equal);
  bind_two(m, "logical_and", ops::logical_and);
  bind_two(m, "logical_or", ops::logical_or);
  bind_two(m, "sigmoid_cross_entropy", ops::sigmoid_cross_entropy);
  m.def(
      "logical_not", [](nb::handle x) { return ops::logical_not(as_given(x, "logical_not")); },
      "x"_any);
  m.def("pow", &power, "x"_any, "y"_any);
  m.def(
      "log", [](nb::handle x) { return ops::log(as_given(x, "log")); }, "x"_any);
  m.def(
      "softplus", [](nb::handle x) { return ops::softplus(as_given(x, "softplus")); }, "x"_any);
  m.def(
      "full_like",
      [](nb::handle x, double value) { return ops::full_like(as_given(x, "full_like"), value); },
      "x"_any, "value"_a);
  m.def(
      "where",
      [](nb::handle condition, nb::handle a, nb::handle b) {
        const std::array<Tensor, 2> in = as_operands(a, b);
        return ops::where(as_given(condition, "where"), in[0], in[1]);
      },
      "condition"_any, "x"_any, "y"_any);
  m.def(
      "clip_by_value",
      [](nb::handle x, nb::handle low, nb::handle high) {
        const Tensor given = as_given(x, "clip_by_value");
        if (is_number(low) && is_number(high)) {
          return ops::clip(given, nb::cast<double>(low), nb::cast<double>(high));
        }
        return ops::clip_between(given, as_operand(low, given), as_operand(high, given));
      },
      "x"_any, "low"_any, "high"_any);
  m.def(
      "binary_cross_entropy",
      [](nb::handle probabilities, nb::handle labels, double epsilon) {
        const std::array<Tensor, 2> in = as_operands(probabilities, labels);
        return ops::binary_cross_entropy_rows(in[0], in[1], epsilon);
      },
      "probabilities"_any, "labels"_any, "epsilon"_a);
}

void bind_reductions(nb::module_& m) {
  bind_reduce(m, "reduce_sum", sum_along);
  bind_reduce(m, "reduce_mean", mean_along);
  bind_reduce(m, "reduce_max", ops::reduce_max);
  bind_reduce(m, "reduce_min", ops::reduce_min);
  bind_reduce(m, "reduce_variance", ops::reduce_variance);
  bind_reduce(m, "reduce_std", ops::reduce_std);
  bind_reduce(m, "reduce_logsumexp", ops::reduce_logsumexp);
  m.def(
      "argmax",
      [](nb::handle x, std::int64_t axis) { return ops::argmax(as_given(x, "argmax"), axis); },
      "x"_any, "axis"_a);
  m.def(
      "argmin",
      [](nb::handle x, std::int64_t axis) { return ops::argmin(as_given(x, "argmin"), axis); },
      "x"_any, "axis"_a);
  m.def(
      "softmax",
      [](nb::handle x, std::int64_t axis) {
        return ops::softmax_along(as_given(x, "softmax"), axis);
      },
      "x"_any, "axis"_a);
  m.def(
      "log_softmax",
      [](nb::handle x, std::int64_t axis) {
        return ops::log_softmax(as_given(x, "log_softmax"), axis);
      },
      "x"_any, "axis"_a);
}

void bind_array_shapes(nb::module_& m) {
  m.def(
      "broadcast_to",
      [](nb::handle x, nb::handle shape) {
        return ops::broadcast_to(as_given(x, "broadcast_to"), as_shape("broadcast_to", shape));
      },
      "x"_any, "shape"_any);
  m.def(
      "transpose",
      [](nb::handle x, const std::vector<std::int64_t>& perm) {
        return ops::transpose(as_given(x, "transpose"), perm);
      },
      "x"_any, "perm"_a);
  m.def(
      "tile",
      [](nb::handle x, const std::vector<std::int64_t>& multiples) {
        return ops::tile(as_given(x, "tile"), multiples);
      },
      "x"_any, "multiples"_a);
  m.def(
      "expand_dims",
      [](nb::handle x, std::int64_t axis) {
        return ops::expand_dims(as_given(x, "expand_dims"), axis);
      },
      "x"_any, "axis"_a);
  m.def(
      "squeeze",
      [](nb::handle x, const std::vector<std::int64_t>& axes) {
        return ops::squeeze(as_given(x, "squeeze"), axes);
      },
      "x"_any, "axes"_a);
  m.def(
      "gather",
      [](nb::handle x, nb::handle ids, std::int64_t axis) {
        return ops::gather(as_given(x, "gather"), as_indices(ids, "gather"), axis);
      },
      "x"_any, "indices"_any, "axis"_a);
  m.def(
      "einsum",
      [](const std::string& equation, nb::handle operands) {
        return ops::einsum(equation, as_tensors(operands, {.call = "einsum"}));
      },
      "equation"_a, "operands"_any);
}

void bind_ctc(nb::module_& m) {
  m.def(
      "ctc_loss",
      [](nb::handle labels, nb::handle logits, nb::handle label_length, nb::handle logit_length,
         bool time_major, std::int64_t blank) {
        const ops::CtcOptions options{
            .logit_lengths =
                as_lengths("ctc_loss", logit_length).value_or(std::vector<std::int32_t>{}),
            .label_lengths =
                as_lengths("ctc_loss", label_length).value_or(std::vector<std::int32_t>{}),
            .blank = blank,
            .time_major = time_major};
        return ops::ctc_loss(as_given(logits, "ctc_loss"), as_indices(labels, "ctc_loss"), options);
      },
      "labels"_any, "logits"_any, "label_length"_any, "logit_length"_any, "time_major"_a,
      "blank"_a);
}

}  // namespace

void bind_array_functions(nb::module_& m) {
  bind_array_elementwise(m);
  bind_reductions(m);
  bind_array_shapes(m);
  bind_ctc(m);
}

}  // namespace openrnn::python
