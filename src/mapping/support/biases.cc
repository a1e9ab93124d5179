#include "mapping/support/biases.h"

#include <cstring>
#include <unordered_map>

#include "base/message.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

namespace {

void set_element(Array& array, std::int64_t at, double value) {
  const auto i = static_cast<std::size_t>(at);
  switch (array.dtype()) {
    case DType::kFloat16:
      array.as<Half>()[i] = to_half(value);
      break;
    case DType::kBfloat16:
      array.as<Bfloat16>()[i] = to_bfloat16(value);
      break;
    case DType::kFloat32:
      array.as<float>()[i] = static_cast<float>(value);
      break;
    default:
      array.as<double>()[i] = value;
  }
}

// What is there in both layouts, by the names of regions; the rest is 0.
Array copied_regions(const ParamsLayout& from, const ConstArrayView& values,
                     const ParamsLayout& to) {
  std::unordered_map<std::string_view, const ParamRegion*> regions;
  for (const auto list : {from.weights(), from.biases()}) {
    for (const ParamRegion& region : list) regions[region.name] = &region;
  }
  Array out(values.dtype, {to.size()});
  const std::size_t width = dtype_size(values.dtype);
  for (const auto list : {to.weights(), to.biases()}) {
    for (const ParamRegion& region : list) {
      const auto found = regions.find(region.name);
      if (found == regions.end() || region.size() == 0) continue;
      std::memcpy(
          static_cast<std::byte*>(out.data()) + static_cast<std::size_t>(region.offset) * width,
          static_cast<const std::byte*>(values.data) +
              static_cast<std::size_t>(found->second->offset) * width,
          static_cast<std::size_t>(region.size()) * width);
    }
  }
  return out;
}

// bW += bR.
void add_recurrent(const ParamsLayout& two, const ConstArrayView& from, const ParamsLayout& one,
                   Array& to) {
  for (const ParamRegion& region : one.biases()) {
    if (region.role != ParamRole::kInputBias) continue;
    const ParamRegion& other =
        two.bias(region.layer, region.direction, ParamRole::kRecurrentBias, region.gate);
    for (std::int64_t i = 0; i < region.rows; ++i) {
      const double sum = element(to.view(), region.offset + i) + element(from, other.offset + i);
      set_element(to, region.offset + i, sum);
    }
  }
}

// Two biases of a slot that had one get the same: their gradients are equal.
void repeat_input(const ParamsLayout& layout, Array& slot) {
  for (const ParamRegion& region : layout.biases()) {
    if (region.role != ParamRole::kRecurrentBias) continue;
    const ParamRegion& from =
        layout.bias(region.layer, region.direction, ParamRole::kInputBias, region.gate);
    for (std::int64_t i = 0; i < region.rows; ++i) {
      set_element(slot, region.offset + i, element(slot.view(), from.offset + i));
    }
  }
}

bool is_zero(const ConstArrayView& params, const ParamRegion& region) {
  for (std::int64_t i = 0; i < region.rows; ++i) {
    if (element(params, region.offset + i) != 0.0) return false;
  }
  return true;
}

// Whether the biases that would go or be added to others may be.
void require_same_network(const MappedNetwork& network, const ParamsLayout& layout, int per_gate) {
  const RnnSpec& spec = network.spec;
  for (const ParamRegion& region : layout.biases()) {
    if (!region.is_bias() || is_zero(network.params.view(), region)) continue;
    if (per_gate == 0) {
      throw UnsupportedError(message("[save_networks] ", network_called(network.name),
                                     " has biases that are not 0, expected none"));
    }
    const bool candidate = spec.mode == RnnMode::kGru && spec.reset_after &&
                           region.role == ParamRole::kRecurrentBias &&
                           gates_of(spec.mode)[static_cast<std::size_t>(region.gate)] == Gate::kN;
    if (candidate) {
      throw UnsupportedError(message("[save_networks] ", network_called(network.name), " has ",
                                     region.name,
                                     " that is not 0, which one bias a gate cannot hold"));
    }
  }
}

}  // namespace

MappedNetwork with_biases(const MappedNetwork& network, int per_gate) {
  const int before = network.spec.biases_per_gate();
  if (before == per_gate) return network;
  MappedNetwork out = network;
  out.spec.use_bias = per_gate > 0;
  out.spec.single_bias = per_gate == 1;
  const ParamsLayout from(network.spec), to(out.spec);
  if (per_gate < before) require_same_network(network, from, per_gate);
  out.params = copied_regions(from, network.params.view(), to);
  if (before == 2 && per_gate == 1) add_recurrent(from, network.params.view(), to, out.params);
  for (auto& [name, slot] : out.slots) {
    slot = copied_regions(from, network.slots.at(name).view(), to);
    if (before == 1 && per_gate == 2) repeat_input(to, slot);
  }
  return out;
}

MappedNetwork without_forget_bias(const MappedNetwork& network) {
  if (network.spec.forget_bias == 0.0) return network;
  MappedNetwork out = network.spec.use_bias ? network : with_biases(network, 1);
  out.spec.forget_bias = 0.0;
  const ParamsLayout layout(out.spec);
  for (const ParamRegion& region : layout.biases()) {
    if (region.role != ParamRole::kInputBias ||
        gates_of(out.spec.mode)[static_cast<std::size_t>(region.gate)] != Gate::kF) {
      continue;
    }
    for (std::int64_t i = 0; i < region.rows; ++i) {
      const double bias = element(out.params.view(), region.offset + i);
      set_element(out.params, region.offset + i, bias + network.spec.forget_bias);
    }
  }
  return out;
}

}  // namespace openrnn::mapping
