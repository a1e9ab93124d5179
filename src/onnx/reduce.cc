// ReduceMean: the mean along some axes.
#include <algorithm>

#include "base/message.h"
#include "mapping/onnx/values/attributes.h"
#include "onnx/kernel.h"

namespace openrnn::onnx {

using mapping::integer_or;
using mapping::MemoryBudget;

namespace {

using Integers = std::vector<std::int64_t>;

// Which axes go: an attribute until version 18, then an input; all of them where none are named.
std::vector<bool> reduced_axes(const KernelCall& call) {
  const std::size_t rank = call.input(0).shape().size();
  Integers axes;
  if (const Integers* found = mapping::find_integers(call.node, "axes")) axes = *found;
  if (const Array* given = call.optional(1)) axes = mapping::integers_of(*given);
  const bool none = integer_or(call.node, "noop_with_empty_axes", 0) != 0;
  std::vector<bool> reduced(rank, axes.empty() && !none);
  for (const std::int64_t axis : axes) reduced[mapping::axis_of(axis, rank)] = true;
  return reduced;
}

// Sums in double from the first element to the last, rounded once.
std::vector<Array> reduce_mean_kernel(const KernelCall& call) {
  const Array& x = call.input(0);
  if (!is_floating(x.dtype())) {
    throw ArgumentError(message("x is ", dtype_name(x.dtype()), ", expected a floating dtype"));
  }
  const std::vector<bool> reduced = reduced_axes(call);
  const bool keep = integer_or(call.node, "keepdims", 1) != 0;
  Integers perm;
  Shape shape;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) perm.push_back(static_cast<std::int64_t>(i));
    if (!reduced[i] || keep) shape.push_back(reduced[i] ? 1 : x.shape()[i]);
  }
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i]) perm.push_back(static_cast<std::int64_t>(i));
  }
  MemoryBudget free;
  const Array rows =
      mapping::converted(mapping::transposed(x, perm, &free), DType::kFloat64, &free);
  Array means = mapping::new_array(DType::kFloat64, std::move(shape), &free);
  const auto count = static_cast<std::size_t>(means.size() ? x.size() / means.size() : 0);
  const double* next = rows.as<double>().data();
  for (double& mean : means.as<double>()) {
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) sum += *next++;
    mean = count ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  }
  return one_output(mapping::converted(means, x.dtype(), &free));
}

}  // namespace

std::span<const KernelRow> reduce_kernels() {
  static const KernelRow kRows[] = {
      {"ReduceMean", reduce_mean_kernel, {"axes", "keepdims", "noop_with_empty_axes"}},
  };
  return kRows;
}

}  // namespace openrnn::onnx
