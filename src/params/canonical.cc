#include <cstring>

#include "base/message.h"
#include "openrnn/params.h"

namespace openrnn {
namespace {

std::vector<Array> split(std::span<const ParamRegion> regions, const ConstArrayView& params) {
  const std::size_t width = dtype_size(params.dtype);
  std::vector<Array> parts;
  parts.reserve(regions.size());
  for (const ParamRegion& region : regions) {
    const auto* from = static_cast<const std::byte*>(params.data) +
                       static_cast<std::size_t>(region.offset) * width;
    parts.emplace_back(ConstArrayView{from, params.dtype, region.shape()});
  }
  return parts;
}

void join(std::string_view call, std::span<const ParamRegion> regions, std::string_view kind,
          std::span<const ConstArrayView> parts, Array& params) {
  if (parts.size() != regions.size()) {
    throw ArgumentError(
        message("[", call, "] ", parts.size(), " ", kind, ", expected ", regions.size()));
  }
  const std::size_t width = dtype_size(params.dtype());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ParamRegion& region = regions[i];
    if (parts[i].size() != region.size()) {
      throw ArgumentError(message("[", call, "] ", kind, "[", i, "] (", region.name, ") has ",
                                  parts[i].size(), " elements of shape ", to_string(parts[i].shape),
                                  ", expected ", region.size(), " of shape ",
                                  to_string(region.shape())));
    }
    if (parts[i].dtype != params.dtype()) {
      throw ArgumentError(message("[", call, "] ", kind, "[", i, "] (", region.name, ") is ",
                                  dtype_name(parts[i].dtype), ", expected ",
                                  dtype_name(params.dtype())));
    }
    if (region.size() == 0) continue;
    auto* to =
        static_cast<std::byte*>(params.data()) + static_cast<std::size_t>(region.offset) * width;
    std::memcpy(to, parts[i].data, parts[i].size_bytes());
  }
}

void check_length(std::string_view call, std::string_view what, const RnnSpec& spec,
                  const ConstArrayView& buffer, std::int64_t expected) {
  if (buffer.shape.size() != 1) {
    throw ArgumentError(message("[", call, "] ", what, " has shape ", to_string(buffer.shape),
                                ", expected 1 dimension of ", expected));
  }
  if (buffer.shape[0] < expected) {
    throw ArgumentError(message("[", call, "] ", what, " has ", buffer.shape[0],
                                " elements, expected at least ", expected, " for ",
                                describe(spec)));
  }
  if (!buffer.data && expected > 0) {
    throw ArgumentError(
        message("[", call, "] ", what, " is null, expected ", expected, " elements"));
  }
}

void check_floating(std::string_view call, std::string_view what, DType dtype) {
  if (is_floating(dtype)) return;
  throw ArgumentError(message("[", call, "] ", what, " is ", dtype_name(dtype),
                              ", expected float16, bfloat16, float32 or float64"));
}

}  // namespace

void check_params(std::string_view call, const RnnSpec& spec, const ConstArrayView& params,
                  std::int64_t expected) {
  if (params.shape.size() == 1 && params.dtype != spec.dtype) {
    throw ArgumentError(message("[", call, "] params is ", dtype_name(params.dtype), ", expected ",
                                dtype_name(spec.dtype)));
  }
  check_length(call, "params", spec, params, expected);
}

void check_exact_params(std::string_view call, const RnnSpec& spec, const ConstArrayView& params,
                        std::int64_t expected) {
  if (params.shape.size() == 1 && params.dtype == spec.dtype && params.shape[0] != expected) {
    throw ArgumentError(message("[", call, "] params has ", params.shape[0], " elements, expected ",
                                expected, " for ", describe(spec)));
  }
  check_params(call, spec, params, expected);
}

void check_slots(std::string_view call, const RnnSpec& spec, const ConstArrayView& slots,
                 std::int64_t expected) {
  check_floating(call, "the slot", slots.dtype);
  check_length(call, "the slot", spec, slots, expected);
}

CanonicalParams params_to_canonical(const ParamsLayout& layout, const ConstArrayView& params) {
  check_params("params_to_canonical", layout.spec(), params, layout.size());
  return {split(layout.weights(), params), split(layout.biases(), params)};
}

CanonicalParams slots_to_canonical(const ParamsLayout& layout, const ConstArrayView& slots) {
  check_slots("slots_to_canonical", layout.spec(), slots, layout.size());
  return {split(layout.weights(), slots), split(layout.biases(), slots)};
}

Array canonical_to_params(const ParamsLayout& layout, std::span<const ConstArrayView> weights,
                          std::span<const ConstArrayView> biases) {
  Array params(layout.spec().dtype, {layout.size()});
  join("canonical_to_params", layout.weights(), "weights", weights, params);
  join("canonical_to_params", layout.biases(), "biases", biases, params);
  return params;
}

Array canonical_to_slots(const ParamsLayout& layout, std::span<const ConstArrayView> weights,
                         std::span<const ConstArrayView> biases) {
  const DType dtype = weights.empty() ? layout.spec().dtype : weights[0].dtype;
  check_floating("canonical_to_slots", "weights[0]", dtype);
  Array slots(dtype, {layout.size()});
  join("canonical_to_slots", layout.weights(), "weights", weights, slots);
  join("canonical_to_slots", layout.biases(), "biases", biases, slots);
  return slots;
}

}  // namespace openrnn
