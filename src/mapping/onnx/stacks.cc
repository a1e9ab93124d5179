// Layers whose outputs are the next one's inputs.
#include <algorithm>
#include <cstring>

#include "mapping/onnx/layers.h"
#include "mapping/onnx/values/attributes.h"

namespace openrnn::mapping {

namespace {

// How often nodes of the graph take each value.
std::unordered_map<std::string_view, int> uses_of(const OnnxGraph& graph) {
  std::unordered_map<std::string_view, int> uses;
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& input : node.inputs) ++uses[input];
  }
  return uses;
}

class Chains {
 public:
  explicit Chains(const OnnxScope& scope) : scope_(scope), uses_(uses_of(scope.graph())) {}

  /// The value [T, D, B, U] whose elements are x [T, B, D*U] of a layer, taken by no other node;
  /// empty if there is none.
  const std::string& origin_of(const OnnxLayer& layer) const {
    const std::string& x = layer.node->input(0);
    const RnnSpec& spec = layer.cell.spec;
    if (const OnnxNode* squeeze = maker(x, "Squeeze")) {
      const bool fits = spec.num_dirs() == 1 && is_only_use(x) && is_only_use(squeeze->input(0)) &&
                        integers(*squeeze, "axes") == std::vector<std::int64_t>{1};
      return fits ? squeeze->input(0) : none_;
    }
    const OnnxNode* reshape = maker(x, "Reshape");
    const OnnxNode* transpose = reshape ? maker(reshape->input(0), "Transpose") : nullptr;
    if (!transpose) return none_;
    const auto* perm = find_integers(*transpose, "perm");
    const std::vector<std::int64_t> shape = integers(*reshape, "shape");
    // Steps and batch as they were: 0 copies a size.
    const bool fits = perm && *perm == std::vector<std::int64_t>{0, 2, 1, 3} && is_only_use(x) &&
                      is_only_use(reshape->input(0)) && is_only_use(transpose->input(0)) &&
                      shape.size() == 3 && shape[0] == 0 && shape[1] == 0 &&
                      (shape[2] == -1 || shape[2] == spec.input_size);
    return fits ? transpose->input(0) : none_;
  }

 private:
  const OnnxNode* maker(const std::string& value, std::string_view op_type) const {
    const OnnxNode* node = scope_.producer(value);
    return node && node->op_type == op_type && node->domain.empty() ? node : nullptr;
  }
  // An attribute of old opsets, a constant input of newer ones.
  std::vector<std::int64_t> integers(const OnnxNode& node, std::string_view name) const {
    if (const auto* found = find_integers(node, name)) return *found;
    std::set<std::string> ignored;
    const std::optional<Array> found = scope_.constant(node.input(1), &ignored);
    return found ? integers_of(*found) : std::vector<std::int64_t>();
  }
  bool is_only_use(const std::string& value) const {
    const auto found = uses_.find(value);
    return found != uses_.end() && found->second == 1;
  }

  const std::string none_;
  const OnnxScope& scope_;
  std::unordered_map<std::string_view, int> uses_;
};

// Whether `next` can be a layer upon `layer`, whose output it takes.
bool is_next_layer(const OnnxLayer& layer, const OnnxLayer& next) {
  RnnSpec same = layer.cell.spec;
  same.input_size = same.output_size();
  return same == next.cell.spec && !layer.cell.batch_major && !next.cell.batch_major &&
         layer.node->input(4) == next.node->input(4);
}

// The rows of all layers; zeros where a layer has none, nothing where no layer has one.
std::optional<Array> joined_states(const std::vector<OnnxLayer>& stack,
                                   std::optional<Array> OnnxLayer::*state) {
  const RnnSpec& spec = stack[0].cell.spec;
  if (std::none_of(stack.begin(), stack.end(), [&](const auto& one) { return one.*state; })) {
    return std::nullopt;
  }
  const auto layers = static_cast<std::int64_t>(stack.size());
  Array all(spec.dtype, {layers * spec.num_dirs(), spec.num_units});
  const std::size_t bytes = all.size_bytes() / stack.size();
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const std::optional<Array>& one = stack[i].*state;
    if (one) std::memcpy(static_cast<char*>(all.data()) + i * bytes, one->data(), bytes);
  }
  return all;
}

// A name that our own export gives to the first layer: 'encoder/layer_0' is of 'encoder'.
std::string name_of_stack(const OnnxNode& first) {
  constexpr std::string_view kFirst = "layer_0";
  const std::string& name = first.label();
  if (name == kFirst) return {};
  if (name.ends_with("/" + std::string(kFirst))) {
    return name.substr(0, name.size() - kFirst.size() - 1);
  }
  return name;
}

}  // namespace

std::vector<std::vector<OnnxLayer>> stacks_of(std::vector<OnnxLayer> layers,
                                              const OnnxScope& scope) {
  const Chains chains(scope);
  std::vector<std::vector<OnnxLayer>> stacks;
  // Which stack ends in the layer with this output.
  std::unordered_map<std::string_view, std::size_t> ends;
  for (OnnxLayer& layer : layers) {
    const std::string &origin = chains.origin_of(layer), &output = layer.node->output(0);
    const auto before = ends.find(origin);
    std::size_t stack = stacks.size();
    if (!origin.empty() && before != ends.end() &&
        is_next_layer(stacks[before->second].back(), layer)) {
      stack = before->second;
    } else {
      stacks.emplace_back();
    }
    stacks[stack].push_back(std::move(layer));
    ends.insert_or_assign(output, stack);
  }
  return stacks;
}

MappedNetwork network_of(const std::vector<OnnxLayer>& stack, const std::string& prefix) {
  MappedNetwork network;
  network.name = prefix + name_of_stack(*stack[0].node);
  network.spec = stack[0].cell.spec;
  network.spec.num_layers = static_cast<std::int64_t>(stack.size());
  const ParamsLayout layout(network.spec);
  network.params = Array(network.spec.dtype, {layout.size()});
  std::set<std::string> tensors;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    fill_params(layout, static_cast<std::int64_t>(i), stack[i].weights.views(),
                network.params.view());
    tensors.insert(stack[i].tensors.begin(), stack[i].tensors.end());
  }
  network.tensors.assign(tensors.begin(), tensors.end());
  network.initial_h = joined_states(stack, &OnnxLayer::initial_h);
  network.initial_c = joined_states(stack, &OnnxLayer::initial_c);
  return network;
}

}  // namespace openrnn::mapping
