#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/onnx/facts.h"
#include "mapping/onnx/layers.h"
#include "mapping/onnx/onnx.h"
#include "mapping/support/values.h"

namespace openrnn {

namespace mapping {

namespace {

// Expressions of constants may take this many times the bytes of all constants: exporters move
// each of W, R, B and P in some five steps.
constexpr std::uint64_t kTimesOfConstants = 16;
// What small files may take, too: some 60 000 steps.
constexpr std::uint64_t kSmallBudget = std::uint64_t{1} << 24;

template <class Visit>
void for_each_subgraph(const OnnxNode& node, const Visit& visit) {
  for (const OnnxAttribute& attribute : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value);
    if (graph) visit(attribute.name, **graph);
  }
}

std::uint64_t constant_bytes(const OnnxGraph& graph) {
  std::uint64_t bytes = 0;
  for (const OnnxTensor& tensor : graph.initializers) bytes += tensor.bytes.size();
  for (const OnnxNode& node : graph.nodes) {
    for (const OnnxAttribute& attribute : node.attributes) {
      const auto* tensor = std::get_if<std::shared_ptr<const OnnxTensor>>(&attribute.value);
      if (tensor) bytes += (*tensor)->bytes.size();
    }
    for_each_subgraph(
        node, [&](const std::string&, const OnnxGraph& inner) { bytes += constant_bytes(inner); });
  }
  return bytes;
}

// Names of the numbers by which nodes move elements, which are no weights, and of those that such
// numbers are joined of. From the last node on, as each follows what it reads.
void add_places(const OnnxGraph& graph, std::set<std::string>* names) {
  constexpr std::string_view kMoves[] = {"Squeeze", "Unsqueeze", "Reshape", "Slice", "Expand"};
  for (auto at = graph.nodes.rbegin(); at != graph.nodes.rend(); ++at) {
    const OnnxNode& node = *at;
    for_each_subgraph(
        node, [&](const std::string&, const OnnxGraph& inner) { add_places(inner, names); });
    const bool moves = std::ranges::find(kMoves, node.op_type) != std::end(kMoves);
    const bool joins =
        node.op_type == "Concat" && std::ranges::any_of(node.outputs, [&](const std::string& name) {
          return names->contains(name);
        });
    if (!moves && !joins) continue;
    for (std::size_t i = moves ? 1 : 0; i < node.inputs.size(); ++i) names->insert(node.inputs[i]);
  }
}

bool is_product(const OnnxNode& node) { return node.op_type == "MatMul" || node.op_type == "Gemm"; }
bool is_quantised(const OnnxNode& node) {
  const std::string& type = node.op_type;
  return type.starts_with("DynamicQuantize") || type.starts_with("QLinear") ||
         type.ends_with("Integer") || type == "QGemm" || type == "DequantizeLinear";
}
bool is_gate(const OnnxNode& node) {
  return node.op_type == "Sigmoid" || node.op_type == "Tanh" || node.op_type == "HardSigmoid";
}
bool names_a_recurrent_operator(const OnnxNode& node) {
  for (const char* word : {"LSTM", "GRU", "RNN"}) {
    if (node.op_type.find(word) != std::string::npos) return true;
  }
  return false;
}

class GraphMapper {
 public:
  explicit GraphMapper(MemoryBudget budget) : budget_(budget) {}
  void map(const OnnxGraph& graph, const std::string& prefix, const OnnxScope* outer);
  MappedModel model() && { return std::move(model_); }

 private:
  void map_node(const OnnxNode& node, const OnnxScope& scope, std::vector<OnnxLayer>* layers);
  void note_quantised(const OnnxGraph& graph);
  void note_body(const OnnxNode& node, const OnnxGraph& body);
  void note_unrolled(const OnnxGraph& graph);

  MemoryBudget budget_;
  MappedModel model_;
};

void GraphMapper::map_node(const OnnxNode& node, const OnnxScope& scope,
                           std::vector<OnnxLayer>* layers) {
  if (find_recurrent(node)) {
    try {
      layers->push_back(layer_of_node(node, scope));
    } catch (const UnsupportedError& error) {
      model_.notes.push_back(error.what());
    } catch (const ArgumentError& error) {
      model_.notes.push_back(message("[onnx] node '", excerpt(node.label()), "' (", node.op_type,
                                     "): ", error.what()));
    }
  } else if (names_a_recurrent_operator(node)) {
    model_.notes.push_back(
        message("[onnx] node '", excerpt(node.label()), "' (", excerpt(node.domain),
                "::", excerpt(node.op_type),
                "): ", is_quantised(node) ? "it is quantised" : "it is no operator of ONNX's own",
                ", expected RNN, LSTM or GRU"));
  }
  for_each_subgraph(node, [&](const std::string& name, const OnnxGraph& inner) {
    if (node.op_type == "Scan" || node.op_type == "Loop") note_body(node, inner);
    map(inner, scope.prefix() + node.output(0) + "." + name + ".", &scope);
  });
}

void GraphMapper::map(const OnnxGraph& graph, const std::string& prefix, const OnnxScope* outer) {
  const OnnxScope scope(graph, prefix, outer, &budget_);
  std::vector<OnnxLayer> layers;
  for (const OnnxNode& node : graph.nodes) map_node(node, scope, &layers);
  note_quantised(graph);
  note_unrolled(graph);
  for (const std::vector<OnnxLayer>& stack : stacks_of(std::move(layers), scope)) {
    model_.networks.push_back(network_of(stack, prefix));
  }
}

void GraphMapper::note_quantised(const OnnxGraph& graph) {
  std::vector<std::string> names;
  for (const OnnxNode& node : graph.nodes) {
    if (is_quantised(node) && !names_a_recurrent_operator(node)) {
      names.push_back(excerpt(node.label()));
    }
  }
  if (names.empty()) return;
  model_.notes.push_back("[onnx] quantised nodes, of which no network is made: " + listed(names));
}

// A step that is written out in plain operators.
void GraphMapper::note_body(const OnnxNode& node, const OnnxGraph& body) {
  const auto is_there = [&](bool (*is)(const OnnxNode&)) {
    return std::any_of(body.nodes.begin(), body.nodes.end(), is);
  };
  if (!is_there(is_product) || !is_there(is_gate)) return;
  model_.notes.push_back(message("[onnx] node '", excerpt(node.label()), "' (", node.op_type,
                                 "): its body is a recurrent step in plain operators, of which no "
                                 "network is made"));
}

// The same matrix in several products, between gates: one product a step.
void GraphMapper::note_unrolled(const OnnxGraph& graph) {
  std::unordered_map<std::string_view, int> products;
  for (const OnnxNode& node : graph.nodes) {
    if (is_product(node)) ++products[node.input(1)];
  }
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_gate)) return;
  for (const OnnxTensor& tensor : graph.initializers) {
    const auto found = products.find(tensor.name);
    if (found == products.end() || found->second < 2) continue;
    model_.notes.push_back(message("[onnx] '", excerpt(tensor.name), "' is a factor of ",
                                   found->second,
                                   " products, as in a network that is unrolled, of "
                                   "which no network is made"));
  }
}

// Of several networks of one name the later ones are numbered.
void make_names_differ(std::vector<MappedNetwork>* networks) {
  std::set<std::string> names;
  std::unordered_map<std::string, int> numbers;
  for (MappedNetwork& network : *networks) {
    const std::string name = network.name;
    while (!names.insert(network.name).second) network.name = message(name, "_", ++numbers[name]);
  }
}

}  // namespace

MappedModel load_onnx(const std::string& path) {
  const OnnxModel model = read_onnx(path);
  MappedModel mapped = networks_from_onnx(model);
  std::set<std::string_view> used;
  for (const MappedNetwork& network : mapped.networks) {
    used.insert(network.tensors.begin(), network.tensors.end());
  }
  std::set<std::string> places;
  add_places(model.graph, &places);
  const ModelFile file(path);
  for (const TensorInfo& info : file.tensors()) {
    if (used.count(info.name) || places.count(info.name)) continue;
    mapped.not_understood.push_back(info.name);
  }
  if (!model.producer_name.empty()) mapped.values.push_back({"producer_name", model.producer_name});
  for (const auto& [key, value] : model.metadata) mapped.values.push_back({key, value});
  mapped.values = typed_values(mapped.values);
  return mapped;
}

}  // namespace mapping

MappedModel networks_from_onnx(const OnnxModel& model) {
  const std::uint64_t bytes = mapping::constant_bytes(model.graph);
  mapping::GraphMapper mapper({.left = mapping::kTimesOfConstants * bytes + mapping::kSmallBudget});
  mapper.map(model.graph, "", nullptr);
  MappedModel mapped = std::move(mapper).model();
  mapping::make_names_differ(&mapped.networks);
  mapped.kind = FileKind::kOnnx;
  for (const std::string& name : model.functions) {
    mapped.notes.push_back("[onnx] the body of the function " + excerpt(name) + " is not read");
  }
  return mapped;
}

}  // namespace openrnn
