#include <algorithm>
#include <iterator>

#include "base/message.h"
#include "openrnn/params.h"
#include "spec/gains.h"

namespace openrnn {
namespace {

struct PseudoLayer {
  std::int64_t layer, direction;
};

std::string region_name(const RnnSpec& spec, PseudoLayer at, std::string_view symbol,
                        std::int64_t gate) {
  // Without a stream, for speed: a layout is made with every packing.
  std::string name = "l" + std::to_string(at.layer) + (at.direction == 0 ? "_fwd/" : "_bwd/");
  name += symbol;
  if (symbol == "Wp" || symbol == "gC" || symbol == "bC") return name;
  return (name += '_') += to_string(gates_of(spec.mode)[static_cast<std::size_t>(gate)]);
}

void append_weights(const RnnSpec& spec, PseudoLayer at, std::vector<ParamRegion>& list) {
  const std::int64_t gates = spec.num_gates();
  const bool skipped = at.layer == 0 && spec.skips_input();
  const std::int64_t input = skipped ? 0 : spec.layer_input_size(at.layer);
  for (std::int64_t g = 0; g < gates; ++g) {
    list.push_back({ParamRole::kInputWeight, at.layer, at.direction, g, g, spec.num_units, input, 0,
                    region_name(spec, at, "W", g)});
  }
  for (std::int64_t g = 0; g < gates; ++g) {
    list.push_back({ParamRole::kRecurrentWeight, at.layer, at.direction, gates + g, g,
                    spec.num_units, spec.hidden_size(), 0, region_name(spec, at, "R", g)});
  }
  if (spec.projecting()) {
    list.push_back({ParamRole::kProjection, at.layer, at.direction, 2 * gates, 0, spec.num_proj,
                    spec.num_units, 0, region_name(spec, at, "Wp", 0)});
  }
}

void append_biases(const RnnSpec& spec, PseudoLayer at, std::vector<ParamRegion>& list) {
  const std::int64_t gates = spec.num_gates();
  for (std::int64_t slot = 0; slot < spec.biases_per_gate() * gates; ++slot) {
    const bool input = slot < gates;
    list.push_back({input ? ParamRole::kInputBias : ParamRole::kRecurrentBias, at.layer,
                    at.direction, slot, slot % gates, spec.num_units, 1, 0,
                    region_name(spec, at, input ? "bW" : "bR", slot % gates)});
  }
}

void append_peepholes(const RnnSpec& spec, PseudoLayer at, std::vector<ParamRegion>& list) {
  constexpr std::int64_t kGatesThatSee[] = {0, 1, 3};  // i, f, o
  for (const std::int64_t gate : kGatesThatSee) {
    list.push_back({ParamRole::kPeephole, at.layer, at.direction, 2 * spec.num_gates() + 1 + gate,
                    gate, spec.num_units, 1, 0, region_name(spec, at, "p", gate)});
  }
}

void append_gains(const RnnSpec& spec, PseudoLayer at, std::vector<ParamRegion>& list) {
  const std::int64_t gates = spec.num_gates(), units = spec.num_units;
  const auto append = [&](ParamRole role, std::string_view symbol, std::int64_t first) {
    for (std::int64_t g = 0; g < gates; ++g) {
      list.push_back({role, at.layer, at.direction, first + g, g, units, 1, 0,
                      region_name(spec, at, symbol, g)});
    }
  };
  const std::int64_t first = 3 * gates + 1;
  if (!spec.normalizes_products()) return append(ParamRole::kSumGain, "g", first);
  append(ParamRole::kInputGain, "gW", first);
  append(ParamRole::kRecurrentGain, "gR", first + gates);
}

void append_cell(const RnnSpec& spec, PseudoLayer at, std::vector<ParamRegion>& list) {
  const std::int64_t slot = 5 * spec.num_gates() + 1;
  for (const bool gain : {true, false}) {
    list.push_back({gain ? ParamRole::kCellGain : ParamRole::kCellBias, at.layer, at.direction,
                    gain ? slot : slot + 1, 0, spec.num_units, 1, 0,
                    region_name(spec, at, gain ? "gC" : "bC", 0)});
  }
}

const ParamRegion& find(std::span<const ParamRegion> list, const ParamRegion& like) {
  for (const ParamRegion& region : list) {
    if (region.layer == like.layer && region.direction == like.direction &&
        region.role == like.role && region.gate == like.gate) {
      return region;
    }
  }
  throw ArgumentError(message("[ParamsLayout] no region at layer ", like.layer, ", direction ",
                              like.direction, ", gate ", like.gate));
}

}  // namespace

ParamsLayout::ParamsLayout(const ValidSpec& spec) : spec_(*spec) {
  std::vector<ParamRegion> peepholes, gains, cells;
  for (std::int64_t layer = 0; layer < spec_.num_layers; ++layer) {
    for (std::int64_t direction = 0; direction < spec_.num_dirs(); ++direction) {
      append_weights(spec_, {layer, direction}, weights_);
      append_biases(spec_, {layer, direction}, biases_);
      if (spec_.use_peepholes) append_peepholes(spec_, {layer, direction}, peepholes);
      if (spec_.normalizes()) append_gains(spec_, {layer, direction}, gains);
      if (spec_.normalizes_cell()) append_cell(spec_, {layer, direction}, cells);
    }
  }
  for (std::vector<ParamRegion>* list : {&peepholes, &gains, &cells}) {
    std::ranges::move(*list, std::back_inserter(biases_));
  }
  for (std::vector<ParamRegion>* list : {&weights_, &biases_}) {
    for (ParamRegion& region : *list) {
      region.offset = size_;
      size_ += region.size();
    }
  }
}

const ParamRegion& ParamsLayout::weight(std::int64_t layer, std::int64_t direction, ParamRole role,
                                        std::int64_t gate) const {
  return find(weights_, {role, layer, direction, 0, gate, 0, 0, 0, {}});
}

const ParamRegion& ParamsLayout::bias(std::int64_t layer, std::int64_t direction, ParamRole role,
                                      std::int64_t gate) const {
  return find(biases_, {role, layer, direction, 0, gate, 0, 0, 0, {}});
}

std::int64_t params_size(const ValidSpec& valid) {
  const RnnSpec& spec = valid;
  const std::int64_t gate_units = spec.num_gates() * spec.num_units;
  std::int64_t size = 0;
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    const bool skipped = layer == 0 && spec.skips_input();
    // Both weights of a gate's unit and its biases.
    const std::int64_t input = skipped ? 0 : spec.layer_input_size(layer);
    size += gate_units * (input + spec.hidden_size() + spec.biases_per_gate());
    if (spec.projecting()) size += spec.num_proj * spec.num_units;
    if (spec.use_peepholes) size += 3 * spec.num_units;
    size += spec::gains_per_gate(spec) * gate_units;
    if (spec.normalizes_cell()) size += 2 * spec.num_units;
  }
  return spec.num_dirs() * size;
}

}  // namespace openrnn
