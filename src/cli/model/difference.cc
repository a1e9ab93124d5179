#include "cli/model/difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "openrnn/runtime.h"

namespace openrnn::cli {
namespace {

// Enough steps for the state to matter, and rows that are no multiple of a vector.
constexpr std::int64_t kTime = 11, kBatch = 3;
constexpr std::uint64_t kSeed = 20;

Array random_input(const RnnSpec& spec) {
  Array values(DType::kFloat64, {kTime, kBatch, spec.input_size});
  RandomStream random(kSeed);
  for (double& value : values.as<double>()) value = random.normal();
  return cast(values.view(), spec.dtype);
}

// [L*D, W] as the state of each row: [L*D, B, W].
Array repeated(const Array& state) {
  const std::int64_t width = state.shape()[1];
  Array out(state.dtype(), {state.shape()[0], kBatch, width});
  const std::size_t bytes = static_cast<std::size_t>(width) * dtype_size(state.dtype());
  for (std::int64_t row = 0; row < state.shape()[0] * kBatch; ++row) {
    std::memcpy(static_cast<std::byte*>(out.data()) + static_cast<std::size_t>(row) * bytes,
                static_cast<const std::byte*>(state.data()) +
                    static_cast<std::size_t>(row / kBatch) * bytes,
                bytes);
  }
  return out;
}

std::vector<double> results_of(const MappedNetwork& network) {
  const RnnSpec& spec = network.spec;
  const Array x = random_input(spec);
  Array y(spec.dtype, {kTime, kBatch, spec.output_size()}), h(spec.dtype, spec.h_shape(kBatch)),
      c(spec.dtype, spec.c_shape(kBatch));
  std::optional<Array> h0, c0;
  if (network.initial_h) h0 = repeated(*network.initial_h);
  if (network.initial_c) c0 = repeated(*network.initial_c);
  ForwardArgs args;
  args.max_time = kTime;
  args.batch = kBatch;
  args.x = x.data();
  args.h0 = h0 ? h0->data() : nullptr;
  args.c0 = c0 ? c0->data() : nullptr;
  args.y = y.data();
  args.hn = h.data();
  args.cn = spec.has_cell() ? c.data() : nullptr;
  InferenceSession(std::make_shared<const PackedModel>(spec, network.params.view())).run(args);
  std::vector<double> results;
  for (const Array* values : {&y, &h, spec.has_cell() ? &c : nullptr}) {
    if (!values) continue;
    for (std::int64_t i = 0; i < values->size(); ++i) {
      results.push_back(element(values->view(), i));
    }
  }
  return results;
}

}  // namespace

Difference difference_of(const MappedNetwork& a, const MappedNetwork& b) {
  const std::vector<double> first = results_of(a), second = results_of(b);
  Difference difference{.values = static_cast<std::int64_t>(first.size())};
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool both_nan = std::isnan(first[i]) && std::isnan(second[i]);
    const double here = first[i] == second[i] || both_nan ? 0.0 : std::abs(first[i] - second[i]);
    // NaN on one side alone is no small difference.
    difference.largest = std::isnan(here) ? HUGE_VAL : std::max(difference.largest, here);
  }
  return difference;
}

}  // namespace openrnn::cli
