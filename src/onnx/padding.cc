// Pad: more elements around, or fewer.
#include "base/message.h"
#include "mapping/onnx/values/attributes.h"
#include "onnx/kernel.h"

namespace openrnn::onnx {

using mapping::MemoryBudget;

namespace {

using Integers = std::vector<std::int64_t>;

enum class Mode { kConstant, kReflect, kEdge, kWrap };

// What one axis gets before and after; less than 0 takes away.
struct Ends {
  std::int64_t before = 0, after = 0;
};

Mode mode_of(const OnnxNode& node) {
  const std::string* found = mapping::find_text(node, "mode");
  if (!found || *found == "constant") return Mode::kConstant;
  if (*found == "reflect") return Mode::kReflect;
  if (*found == "edge") return Mode::kEdge;
  if (*found == "wrap") return Mode::kWrap;
  mapping::refuse_node(node,
                       "the mode is '" + *found + "', expected constant, reflect, edge or wrap");
}

// The axes that `pads` is about, all of them where none are given.
Integers padded_axes(const KernelCall& call, std::size_t rank) {
  if (const Array* given = call.optional(3)) return mapping::integers_of(*given);
  Integers axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  return axes;
}

std::vector<Ends> ends_of(const KernelCall& call) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const Shape& shape = call.input(0).shape();
  const Integers* attribute = mapping::find_integers(call.node, "pads");
  const Integers pads = attribute ? *attribute : mapping::integers_of(call.input(1));
  const Integers axes = padded_axes(call, shape.size());
  if (pads.size() != 2 * axes.size()) {
    throw ArgumentError(message("pads is ", to_string(pads), ", expected ", 2 * axes.size(),
                                " numbers, two for each axis"));
  }
  std::vector<Ends> ends(shape.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = mapping::axis_of(axes[i], shape.size());
    const Ends given{pads[i], pads[axes.size() + i]};
    for (const std::int64_t pad : {given.before, given.after}) {
      if (pad >= -kMost && pad <= kMost) continue;
      throw ArgumentError(message("pads has ", pad, ", expected ", -kMost, " to ", kMost));
    }
    if (shape[axis] + given.before + given.after < 0) {
      throw ArgumentError(message("pads takes ", -given.before, " and ", -given.after,
                                  " away from axis ", axis, " of ", to_string(shape),
                                  ", expected no more than there is"));
    }
    ends[axis] = given;
  }
  return ends;
}

// The element whose copy stands at `place`, which counts from the first one and may lie outside.
std::int64_t source_of(Mode mode, std::int64_t place, std::int64_t size) {
  if (mode == Mode::kEdge) return std::clamp<std::int64_t>(place, 0, size - 1);
  // Reflected elements come again after each way there and back, the ends once.
  const std::int64_t period = mode == Mode::kWrap ? size : std::max<std::int64_t>(2 * size - 2, 1);
  const std::int64_t inside = (place % period + period) % period;
  return inside < size ? inside : period - inside;
}

Array by_copies(const Array& x, std::size_t axis, const Ends& ends, Mode mode) {
  const std::int64_t size = x.shape()[axis], length = size + ends.before + ends.after;
  if (size == 0 && length > 0) {
    throw ArgumentError(message("x is ", to_string(x.shape()), ", expected elements to copy"));
  }
  Integers sources(static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < length; ++i) {
    sources[static_cast<std::size_t>(i)] = source_of(mode, i - ends.before, size);
  }
  MemoryBudget free;
  return mapping::gathered(x, mapping::int64_array({length}, sources), axis, &free);
}

Array by_value(const Array& x, std::size_t axis, const Ends& ends, const Array& value) {
  MemoryBudget free;
  const std::int64_t size = x.shape()[axis];
  const auto of_value = [&](std::int64_t length) {
    Shape shape = x.shape();
    shape[axis] = std::max<std::int64_t>(length, 0);
    return mapping::filled(value, shape, &free);
  };
  const std::int64_t start = std::max<std::int64_t>(-ends.before, 0);
  const std::int64_t end = std::max(size + std::min<std::int64_t>(ends.after, 0), start);
  const Array inner =
      mapping::sliced(x, axis, {std::min(start, size), std::min(end, size), 1}, &free);
  const std::int64_t length = size + ends.before + ends.after, kept = inner.shape()[axis];
  const std::int64_t before = std::min(std::max<std::int64_t>(ends.before, 0), length);
  const Array first = of_value(before), last = of_value(length - before - kept);
  return mapping::concatenated({&first, &inner, &last}, axis, &free);
}

Array value_of(const KernelCall& call) {
  const DType dtype = call.input(0).dtype();
  const float* attribute = mapping::find_number(call.node, "value");
  if (const Array* given = call.optional(2)) {
    if (given->dtype() == dtype && given->size() == 1) return *given;
    throw ArgumentError(message("constant_value is ", dtype_name(given->dtype()), " ",
                                to_string(given->shape()), ", expected one ", dtype_name(dtype)));
  }
  const float number = attribute ? *attribute : 0.0f;
  MemoryBudget free;
  return mapping::converted(Array::of<float>({}, std::span(&number, 1)), dtype, &free);
}

std::vector<Array> pad_kernel(const KernelCall& call) {
  const Mode mode = mode_of(call.node);
  const std::vector<Ends> ends = ends_of(call);
  const Array value = value_of(call);
  Array x = call.input(0);
  for (std::size_t axis = 0; axis < ends.size(); ++axis) {
    if (ends[axis].before == 0 && ends[axis].after == 0) continue;
    x = mode == Mode::kConstant ? by_value(x, axis, ends[axis], value)
                                : by_copies(x, axis, ends[axis], mode);
  }
  return one_output(std::move(x));
}

}  // namespace

std::span<const KernelRow> padding_kernels() {
  static const KernelRow kRows[] = {{"Pad", pad_kernel, {"mode", "pads", "value"}}};
  return kRows;
}

}  // namespace openrnn::onnx
