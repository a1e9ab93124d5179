#include "mapping/onnx/values/scope.h"

#include "mapping/onnx/values/moves.h"

namespace openrnn::mapping {

OnnxScope::OnnxScope(const OnnxGraph& graph, std::string prefix, const OnnxScope* outer,
                     MemoryBudget* budget)
    : graph_(graph), prefix_(std::move(prefix)), outer_(outer), budget_(budget) {
  for (std::size_t i = 0; i < graph.initializers.size(); ++i) {
    initializers_.emplace(graph.initializers[i].name, i);
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs) {
      if (!output.empty()) producers_.emplace(output, i);
    }
  }
}

const OnnxTensor* OnnxScope::initializer(const std::string& name) const {
  const auto found = initializers_.find(name);
  return found == initializers_.end() ? nullptr : &graph_.initializers[found->second];
}

const OnnxNode* OnnxScope::producer(const std::string& name) const {
  const auto found = producers_.find(name);
  return found == producers_.end() ? nullptr : &graph_.nodes[found->second];
}

// Of a value that no node of this graph makes: whether it is constant.
bool OnnxScope::add_leaf(const std::string& name, std::set<std::string>* used,
                         Values* values) const {
  if (values->count(name)) return true;
  if (const OnnxTensor* tensor = initializer(name)) {
    if (!dtype_of_onnx(tensor->element_type)) return false;
    budget_->take(tensor->bytes.size());
    values->emplace(name, tensor->array());
    used->insert(prefix_ + name);
    return true;
  }
  std::optional<Array> found = outer_ ? outer_->constant(name, used) : std::nullopt;
  if (!found) return false;
  values->emplace(name, *std::move(found));
  return true;
}

// The nodes that make a value, if all of them move constants. Not by recursion: a chain may be as
// long as the file.
bool OnnxScope::collect(const std::string& name, std::set<std::size_t>* nodes,
                        std::set<std::string>* used, Values* values) const {
  std::vector<std::pair<const std::string*, std::size_t>> ahead{{&name, graph_.nodes.size()}};
  while (!ahead.empty()) {
    const auto [value, before] = ahead.back();
    ahead.pop_back();
    budget_->take(0);  // a long chain may be walked for every node
    const auto made = producers_.find(*value);
    if (made == producers_.end()) {
      if (!add_leaf(*value, used, values)) return false;
      continue;
    }
    // Each node comes after those whose outputs it takes, so there is no cycle.
    const OnnxNode& node = graph_.nodes[made->second];
    if (made->second >= before || !is_move(node)) return false;
    if (!nodes->insert(made->second).second) continue;
    for (const std::string& input : node.inputs) {
      if (!input.empty()) ahead.emplace_back(&input, made->second);
    }
  }
  return true;
}

void OnnxScope::compute(std::size_t index, std::set<std::string>* used, Values* values) const {
  const OnnxNode& node = graph_.nodes[index];
  std::vector<const Array*> inputs;
  for (const std::string& input : node.inputs) {
    inputs.push_back(input.empty() ? nullptr : &values->at(input));
  }
  std::vector<Array> outputs = compute_move(node, inputs, budget_);
  if (node.op_type == "Constant") used->insert(prefix_ + node.output(0));
  for (std::size_t i = 0; i < outputs.size() && i < node.outputs.size(); ++i) {
    values->insert_or_assign(node.outputs[i], std::move(outputs[i]));
  }
}

std::optional<Array> OnnxScope::constant(const std::string& name,
                                         std::set<std::string>* used) const {
  std::set<std::size_t> nodes;
  std::set<std::string> from;
  Values values;
  if (!collect(name, &nodes, &from, &values)) return std::nullopt;
  for (const std::size_t node : nodes) compute(node, &from, &values);
  const auto found = values.find(name);
  if (found == values.end()) return std::nullopt;
  used->insert(from.begin(), from.end());
  return std::move(found->second);
}

std::optional<OnnxConstant> OnnxScope::viewed(const std::string& name,
                                              std::set<std::string>* used) const {
  const OnnxTensor* const tensor = producers_.count(name) ? nullptr : initializer(name);
  const std::optional<DType> dtype = tensor ? dtype_of_onnx(tensor->element_type) : std::nullopt;
  // A tensor whose bytes do not fit its shape is refused where it becomes an array.
  if (!dtype || tensor->bytes.size() !=
                    static_cast<std::uint64_t>(shape_size(tensor->shape)) * dtype_size(*dtype)) {
    std::optional<Array> found = constant(name, used);
    if (!found) return std::nullopt;
    OnnxConstant constant{.view = {}, .kept = *std::move(found)};
    constant.view = constant.kept.view();
    return constant;
  }
  used->insert(prefix_ + name);
  return OnnxConstant{.view = {tensor->bytes.data(), *dtype, tensor->shape}, .kept = {}};
}

}  // namespace openrnn::mapping
