// Conv: patches of the input as columns, and their product with the weights.
#include <algorithm>

#include "base/message.h"
#include "cpu/device/cpu_device.h"
#include "mapping/onnx/values/attributes.h"
#include "onnx/kernel.h"
#include "onnx/patches.h"
#include "openrnn/device.h"

namespace openrnn::onnx {

using mapping::find_integers;
using mapping::find_text;
using mapping::integer_or;

namespace {

using Integers = std::vector<std::int64_t>;

// Sizes, strides, dilations and pads are at most this, so that no sum and no product of two of them
// overflows.
constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();

void check_number(const char* name, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= kLargest) return;
  throw ArgumentError(
      message(name, " has ", value, ", expected ", least, " to ", kLargest, " for each dimension"));
}

// One number for each of `count`.
Integers numbers_of(const KernelCall& call, const char* name, std::size_t count,
                    std::int64_t least) {
  const Integers* found = find_integers(call.node, name);
  if (!found) return Integers(count, least);
  if (found->size() != count) {
    throw ArgumentError(message(name, " is ", to_string(*found), ", expected ", count, " numbers"));
  }
  for (const std::int64_t value : *found) check_number(name, value, least);
  return *found;
}

// The output is as large as the input divided by the stride; an odd one is at the end or before.
void pad_to_same(bool odd_before, Axis* axis) {
  if (axis->input == 0) return;
  const std::int64_t last = (axis->input - 1) / axis->stride * axis->stride;
  const std::int64_t all = std::max<std::int64_t>(last + axis->span() - axis->input, 0);
  axis->before = (all + (odd_before ? 1 : 0)) / 2;
  axis->after = all - axis->before;
}

void find_pads(const KernelCall& call, std::vector<Axis>* axes) {
  const std::size_t rank = axes->size();
  const Integers pads = numbers_of(call, "pads", 2 * rank, 0);
  const std::string* found = find_text(call.node, "auto_pad");
  const std::string kind = found ? *found : "NOTSET";
  const bool same = kind == "SAME_UPPER" || kind == "SAME_LOWER";
  if (!same && kind != "VALID" && kind != "NOTSET") {
    mapping::refuse_node(
        call.node, "auto_pad is '" + kind + "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  }
  if (kind != "NOTSET" && std::ranges::any_of(pads, [](std::int64_t pad) { return pad != 0; })) {
    mapping::refuse_node(call.node, "there are pads and auto_pad " + kind + ", expected one");
  }
  for (std::size_t i = 0; i < rank; ++i) {
    Axis& axis = (*axes)[i];
    axis.before = pads[i];
    axis.after = pads[rank + i];
    if (same) pad_to_same(kind == "SAME_LOWER", &axis);
  }
}

std::vector<Axis> axes_of(const KernelCall& call, const Shape& x, const Shape& w) {
  std::vector<Axis> axes(x.size() - 2);
  const Integers strides = numbers_of(call, "strides", axes.size(), 1);
  const Integers dilations = numbers_of(call, "dilations", axes.size(), 1);
  const Integers kernel(w.begin() + 2, w.end());
  const Integers* given = find_integers(call.node, "kernel_shape");
  if (given && *given != kernel) {
    throw ArgumentError(message("kernel_shape is ", to_string(*given), ", expected ",
                                to_string(kernel), " for W of ", to_string(w)));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    check_number("X", x[i + 2], 0);
    check_number("W", w[i + 2], 1);
    axes[i] = {
        .input = x[i + 2], .kernel = w[i + 2], .stride = strides[i], .dilation = dilations[i]};
  }
  find_pads(call, &axes);
  for (Axis& axis : axes) {
    const std::int64_t room = axis.before + axis.input + axis.after - axis.span();
    if (room < 0) {
      throw ArgumentError(message("W is ", to_string(w), " and spans ", axis.span(), " of ",
                                  axis.before + axis.input + axis.after, " inputs of X ",
                                  to_string(x), ", expected no more than there are"));
    }
    axis.output = room / axis.stride + 1;
  }
  return axes;
}

void check_operands(const KernelCall& call, std::int64_t groups) {
  const Array &x = call.input(0), &w = call.input(1);
  const Shape &in = x.shape(), &kernel = w.shape();
  if (!is_floating(x.dtype()) || in.size() < 3) {
    throw ArgumentError(message("X is ", dtype_name(x.dtype()), " ", to_string(in),
                                ", expected a floating dtype and [N, C, ..]"));
  }
  const bool fits = w.dtype() == x.dtype() && kernel.size() == in.size();
  if (groups < 1 || in[1] % groups || !fits || kernel[1] != in[1] / groups || kernel[0] % groups) {
    throw ArgumentError(message("W is ", dtype_name(w.dtype()), " ", to_string(kernel),
                                " and group ", groups, ", expected ", dtype_name(x.dtype()),
                                " [M, C / group, ..] of ", in.size(), " dimensions for X of ",
                                to_string(in), ", group a divisor of M and C"));
  }
  const Array* bias = call.optional(2);
  if (bias && (bias->dtype() != x.dtype() || bias->shape() != Shape{kernel[0]})) {
    throw ArgumentError(message("B is ", dtype_name(bias->dtype()), " ", to_string(bias->shape()),
                                ", expected ", dtype_name(x.dtype()), " [", kernel[0], "]"));
  }
}

Convolution convolution_of(const KernelCall& call) {
  const std::int64_t groups = integer_or(call.node, "group", 1);
  check_operands(call, groups);
  const Shape &x = call.input(0).shape(), &w = call.input(1).shape();
  return {.batch = x[0],
          .channels = x[1],
          .filters = w[0],
          .groups = groups,
          .axes = axes_of(call, x, w)};
}

// As many positions at once as have 2^18 columns' elements, which L2 holds; 128
// at least, so that packing the weights for a product costs little next to it.
std::int64_t positions_at_once(const Convolution& conv) {
  constexpr std::int64_t kElements = std::int64_t{1} << 18, kFewest = 128;
  const std::int64_t depth = std::max<std::int64_t>(conv.group_channels() * conv.taps, 1);
  return std::min(std::max(kElements / depth, kFewest), conv.batch * conv.positions);
}

template <class T>
void convolve(const Convolution& conv, const KernelCall& call, Array* out) {
  const DType dtype = out->dtype();
  const std::int64_t depth = conv.group_channels() * conv.taps, filters = conv.group_filters();
  const std::int64_t step = positions_at_once(conv), all = conv.batch * conv.positions;
  Array columns(dtype, {depth, step}), products(dtype, {step, filters});
  const T* bias = call.optional(2) ? call.input(2).as<T>().data() : nullptr;
  for (std::int64_t group = 0; group < conv.groups; ++group) {
    for (Positions range; range.begin < all; range.begin = range.end) {
      range.end = std::min(all, range.begin + step);
      fill_columns(conv, group, range, call.input(0).as<T>().data(), columns.as<T>().data());
      cpu_device().matmul({.dtype = dtype,
                           .m = range.end - range.begin,
                           .n = filters,
                           .k = depth,
                           .a = columns.data(),
                           .b = call.input(1).as<T>().data() + group * filters * depth,
                           .bias = bias ? bias + group * filters : nullptr,
                           .c = products.data(),
                           .transpose_a = true,
                           .transpose_b = true});
      store(conv, group, range, products.as<T>().data(), out->as<T>().data());
    }
  }
}

std::vector<Array> conv_kernel(const KernelCall& call) {
  Convolution conv = convolution_of(call);
  Shape shape{conv.batch, conv.filters};
  for (const Axis& axis : conv.axes) shape.push_back(axis.output);
  mapping::MemoryBudget free;
  Array out = mapping::new_array(call.input(0).dtype(), std::move(shape), &free);
  if (out.size() == 0) return one_output(std::move(out));
  conv.positions = out.size() / (conv.batch * conv.filters);
  if (conv.channels > 0) {
    conv.inputs = call.input(0).size() / (conv.batch * conv.channels);
    conv.taps = call.input(1).size() / (conv.filters * conv.group_channels());
  }
  switch (out.dtype()) {
    case DType::kFloat64:
      convolve<double>(conv, call, &out);
      break;
    case DType::kFloat16:
      convolve<Half>(conv, call, &out);
      break;
    case DType::kBfloat16:
      convolve<Bfloat16>(conv, call, &out);
      break;
    default:
      convolve<float>(conv, call, &out);
  }
  return one_output(std::move(out));
}

}  // namespace

std::span<const KernelRow> convolution_kernels() {
  static const KernelRow kRows[] = {
      {"Conv", conv_kernel, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}},
  };
  return kRows;
}

}  // namespace openrnn::onnx
