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

void join(std::span<const ParamRegion> regions, std::string_view kind,
          std::span<const ConstArrayView> parts, Array& params) {
  if (parts.size() != regions.size()) {
    throw ArgumentError(
        message("[canonical_to_params] ", parts.size(), " ", kind, ", expected ", regions.size()));
  }
  const std::size_t width = dtype_size(params.dtype());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ParamRegion& region = regions[i];
    if (parts[i].size() != region.size()) {
      throw ArgumentError(message("[canonical_to_params] ", kind, "[", i, "] (", region.name,
                                  ") has shape ", to_string(parts[i].shape), ", expected ",
                                  to_string(region.shape())));
    }
    if (parts[i].dtype != params.dtype()) {
      throw ArgumentError(message("[canonical_to_params] ", kind, "[", i, "] (", region.name,
                                  ") is ", dtype_name(parts[i].dtype), ", expected ",
                                  dtype_name(params.dtype())));
    }
    if (region.size() == 0) continue;
    auto* to =
        static_cast<std::byte*>(params.data()) + static_cast<std::size_t>(region.offset) * width;
    std::memcpy(to, parts[i].data, parts[i].size_bytes());
  }
}

}  // namespace

void check_params(std::string_view call, const RnnSpec& spec, const ConstArrayView& params,
                  std::int64_t expected) {
  if (params.shape.size() != 1) {
    throw ArgumentError(message("[", call, "] params has shape ", to_string(params.shape),
                                ", expected 1 dimension of ", expected));
  }
  if (params.dtype != spec.dtype) {
    throw ArgumentError(message("[", call, "] params is ", dtype_name(params.dtype), ", expected ",
                                dtype_name(spec.dtype)));
  }
  if (params.shape[0] < expected) {
    throw ArgumentError(message("[", call, "] params has ", params.shape[0],
                                " elements, expected at least ", expected, " for ",
                                describe(spec)));
  }
}

CanonicalParams params_to_canonical(const ParamsLayout& layout, const ConstArrayView& params) {
  check_params("params_to_canonical", layout.spec(), params, layout.size());
  return {split(layout.weights(), params), split(layout.biases(), params)};
}

Array canonical_to_params(const ParamsLayout& layout, std::span<const ConstArrayView> weights,
                          std::span<const ConstArrayView> biases) {
  Array params(layout.spec().dtype, {layout.size()});
  join(layout.weights(), "weights", weights, params);
  join(layout.biases(), "biases", biases, params);
  return params;
}

}  // namespace openrnn
