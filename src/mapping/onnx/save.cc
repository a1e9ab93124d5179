// Networks as graphs of ONNX's recurrent operators.
#include <algorithm>
#include <set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "mapping/onnx/facts.h"
#include "mapping/onnx/onnx.h"
#include "mapping/onnx/values/arrays.h"
#include "mapping/onnx/weights.h"
#include "mapping/support/biases.h"
#include "mapping/support/options.h"
#include "mapping/support/values.h"

namespace openrnn {

namespace mapping {

namespace {

constexpr std::string_view kHeldByOnnx[] = {
    "input_mode",        "reset_after",   "activation",    "recurrent_activation",
    "output_activation", "use_peepholes", "coupled_gates", "gate_clip",
    "forget_bias",       "use_bias",      "single_bias"};

// The set of operators that has bfloat16; before it one that every runtime has.
constexpr std::int64_t kOpsetOfBfloat16 = 22, kIrOfBfloat16 = 10, kOpset = 14, kIr = 7;

// ONNX has one number for both sides.
void require_symmetric_clip(const MappedNetwork& network) {
  const auto& clip = network.spec.gate_clip;
  if (!clip || ((*clip)[0] == -(*clip)[1] && (*clip)[1] > 0.0)) return;
  throw UnsupportedError(message("[save_networks] ", network_called(network.name),
                                 " has gate_clip (", (*clip)[0], ", ", (*clip)[1],
                                 "), which an ONNX model cannot hold: its clip is of both sides"));
}

class NetworkWriter {
 public:
  NetworkWriter(const MappedNetwork& network, const OnnxExportOptions& options, OnnxGraph* graph);
  void write();

 private:
  std::string named(const std::string& part) const { return prefix_ + part; }
  std::string of_layer(std::int64_t layer, const std::string& part) const {
    return message(prefix_, "layer_", layer, "/", part);
  }
  std::string add_tensor(const std::string& name, Array values) {
    graph_->initializers.push_back(OnnxTensor::of(name, std::move(values)));
    return name;
  }
  std::string integers(const std::string& name, const std::vector<std::int64_t>& values) {
    return add_tensor(name, int64_array({static_cast<std::int64_t>(values.size())}, values));
  }
  OnnxNode& add_node(const std::string& op_type, std::vector<std::string> inputs,
                     std::vector<std::string> outputs, std::vector<OnnxAttribute> attributes = {});
  void add_input(const std::string& name, std::int32_t type, std::vector<OnnxDim> dims) {
    graph_->inputs.push_back({named(name), type, std::move(dims)});
  }
  void add_output(const std::string& name, std::vector<OnnxDim> dims) {
    graph_->outputs.push_back({named(name), onnx_element_type(spec_.dtype), std::move(dims)});
  }
  void add_inputs();
  void add_states(std::string_view state, const std::optional<Array>& initial,
                  std::vector<std::string>* of_layers);
  std::vector<OnnxAttribute> attributes() const;
  void add_activations(std::vector<OnnxAttribute>* attributes) const;
  std::string add_layer(std::int64_t layer, const std::string& x);
  std::string join_directions(std::int64_t layer, const std::string& y);
  void join_states(const std::string& state);

  std::string prefix_;
  MappedNetwork network_;
  const RnnSpec& spec_;
  ParamsLayout layout_;
  const OnnxExportOptions& options_;
  OnnxGraph* graph_;
  std::string lengths_;
  // Of each layer; empty without.
  std::vector<std::string> h_, c_;
};

// What an ONNX model holds of a network, in the form that it has there.
MappedNetwork as_held(const MappedNetwork& network) {
  MappedNetwork held = network;
  held.slots.clear();
  held.spec = plainest(network.spec);
  require_held("save_networks", network.name, held.spec, "an ONNX model", kHeldByOnnx);
  require_symmetric_clip(held);
  held = without_forget_bias(held);
  return with_biases(held, held.spec.use_bias ? 2 : 0);
}

NetworkWriter::NetworkWriter(const MappedNetwork& network, const OnnxExportOptions& options,
                             OnnxGraph* graph)
    : prefix_(network.name.empty() ? "" : network.name + "/"),
      network_(as_held(network)),
      spec_(network_.spec),
      layout_(spec_),
      options_(options),
      graph_(graph) {}

OnnxNode& NetworkWriter::add_node(const std::string& op_type, std::vector<std::string> inputs,
                                  std::vector<std::string> outputs,
                                  std::vector<OnnxAttribute> attributes) {
  std::string name = outputs[0] + "/" + op_type;
  OnnxNode node{.name = std::move(name),
                .op_type = op_type,
                .domain = {},
                .inputs = std::move(inputs),
                .outputs = std::move(outputs),
                .attributes = std::move(attributes)};
  return graph_->nodes.emplace_back(std::move(node));
}

void NetworkWriter::add_inputs() {
  const std::int32_t type = onnx_element_type(spec_.dtype);
  add_input("x", type, {{-1, "time"}, {-1, "batch"}, {spec_.input_size, ""}});
  if (options_.lengths) {
    lengths_ = named("lengths");
    add_input("lengths", onnx_element_type(DType::kInt32), {{-1, "batch"}});
  }
  add_states("h", network_.initial_h, &h_);
  if (spec_.is_lstm()) add_states("c", network_.initial_c, &c_);
}

// As an input h0 [L*D, B, U], or rows of constants that are repeated for each row of the batch.
void NetworkWriter::add_states(std::string_view state, const std::optional<Array>& initial,
                               std::vector<std::string>* of_layers) {
  const std::string start = std::string(state) + "0";
  const std::int64_t dirs = spec_.num_dirs(), rows = spec_.num_pseudo_layers();
  const auto layers = static_cast<std::size_t>(spec_.num_layers);
  if (!options_.states && !initial) {
    of_layers->assign(layers, "");
    return;
  }
  std::string whole = named(start);
  if (options_.states) {
    add_input(start, onnx_element_type(spec_.dtype),
              {{rows, ""}, {-1, "batch"}, {spec_.num_units, ""}});
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    const std::string name = of_layer(layer, start);
    if (options_.states) {
      add_node("Slice",
               {whole, integers(name + "/starts", {layer * dirs}),
                integers(name + "/ends", {(layer + 1) * dirs}), integers(name + "/axes", {0})},
               {name});
    } else {
      MemoryBudget free;
      const SliceOf range{layer * dirs, (layer + 1) * dirs, 1};
      Array own = sliced(*initial, 0, range, &free).reshaped({dirs, 1, spec_.num_units});
      add_tensor(name + "/row", std::move(own));
      add_node("Shape", {named("x")}, {name + "/shape_of_x"});
      add_node(
          "Slice",
          {name + "/shape_of_x", integers(name + "/starts", {1}), integers(name + "/ends", {2})},
          {name + "/batch"});
      add_node("Concat",
               {integers(name + "/directions", {dirs}), name + "/batch",
                integers(name + "/units", {spec_.num_units})},
               {name + "/shape"}, {{"axis", std::int64_t{0}}});
      add_node("Expand", {name + "/row", name + "/shape"}, {name});
    }
    of_layers->push_back(name);
  }
}

void NetworkWriter::add_activations(std::vector<OnnxAttribute>* attributes) const {
  std::vector<CellActivation> used{spec_.candidate_activation()};
  if (recurrent_of(spec_.mode).activations > 1) used.insert(used.begin(), spec_.gate_activation());
  if (spec_.is_lstm()) used.push_back(spec_.cell_activation());
  std::vector<std::string> names;
  std::vector<float> alphas, betas;
  for (std::int64_t direction = 0; direction < spec_.num_dirs(); ++direction) {
    for (const CellActivation& one : used) {
      const OnnxActivation& facts = onnx_activation_of(one.kind);
      names.emplace_back(facts.name);
      if (facts.takes_alpha) alphas.push_back(static_cast<float>(one.alpha));
      if (facts.takes_beta) betas.push_back(static_cast<float>(one.beta));
    }
  }
  attributes->push_back({"activations", names});
  if (!alphas.empty()) attributes->push_back({"activation_alpha", alphas});
  if (!betas.empty()) attributes->push_back({"activation_beta", betas});
}

std::vector<OnnxAttribute> NetworkWriter::attributes() const {
  std::vector<OnnxAttribute> attributes{{"hidden_size", spec_.num_units}};
  if (spec_.num_dirs() == 2) attributes.push_back({"direction", std::string("bidirectional")});
  const bool usual = !spec_.activation && !spec_.recurrent_activation && !spec_.output_activation &&
                     spec_.mode != RnnMode::kRnnRelu;
  if (!usual) add_activations(&attributes);
  if (spec_.gate_clip) {
    attributes.push_back({"clip", static_cast<float>((*spec_.gate_clip)[1])});
  }
  if (spec_.mode == RnnMode::kGru) {
    attributes.push_back({"linear_before_reset", std::int64_t{spec_.reset_after}});
  }
  if (spec_.coupled_gates) attributes.push_back({"input_forget", std::int64_t{1}});
  return attributes;
}

std::string NetworkWriter::add_layer(std::int64_t layer, const std::string& x) {
  OnnxWeights weights = onnx_weights_of(layout_, network_.params.view(), layer);
  const auto at = static_cast<std::size_t>(layer);
  std::vector<std::string> inputs{x, add_tensor(of_layer(layer, "W"), std::move(weights.w)),
                                  add_tensor(of_layer(layer, "R"), std::move(weights.r))};
  inputs.push_back(weights.b ? add_tensor(of_layer(layer, "B"), *std::move(weights.b)) : "");
  inputs.push_back(lengths_);
  inputs.push_back(h_[at]);
  if (spec_.is_lstm()) inputs.push_back(c_[at]);
  if (weights.p) inputs.push_back(add_tensor(of_layer(layer, "P"), *std::move(weights.p)));
  while (inputs.back().empty()) inputs.pop_back();
  std::vector<std::string> outputs{of_layer(layer, "Y"), of_layer(layer, "h")};
  if (spec_.is_lstm()) outputs.push_back(of_layer(layer, "c"));
  OnnxNode& node = add_node(std::string(recurrent_of(spec_.mode).op_type), std::move(inputs),
                            std::move(outputs), attributes());
  node.name = message(prefix_, "layer_", layer);
  return node.output(0);
}

// [T, D, B, U] to [T, B, D*U].
std::string NetworkWriter::join_directions(std::int64_t layer, const std::string& y) {
  const bool last = layer + 1 == spec_.num_layers;
  const std::string joined = last ? named("y") : of_layer(layer, "joined");
  if (spec_.num_dirs() == 1) {
    add_node("Squeeze", {y, integers(of_layer(layer, "axes"), {1})}, {joined});
    return joined;
  }
  const std::string transposed = of_layer(layer, "transposed");
  add_node("Transpose", {y}, {transposed}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  add_node("Reshape", {transposed, integers(of_layer(layer, "shape"), {0, 0, -1})}, {joined});
  return joined;
}

void NetworkWriter::join_states(const std::string& state) {
  std::vector<std::string> parts;
  for (std::int64_t layer = 0; layer < spec_.num_layers; ++layer) {
    parts.push_back(of_layer(layer, state));
  }
  add_node("Concat", std::move(parts), {named(state)}, {{"axis", std::int64_t{0}}});
  add_output(state, {{spec_.num_pseudo_layers(), ""}, {-1, "batch"}, {spec_.num_units, ""}});
}

void NetworkWriter::write() {
  add_inputs();
  std::string x = named("x");
  for (std::int64_t layer = 0; layer < spec_.num_layers; ++layer) {
    x = join_directions(layer, add_layer(layer, x));
  }
  add_output("y", {{-1, "time"}, {-1, "batch"}, {spec_.output_size(), ""}});
  join_states("h");
  if (spec_.is_lstm()) join_states("c");
}

// 'layer_0' and a network without a name would share some.
void require_unequal_names(const OnnxGraph& graph) {
  std::set<std::string_view> names;
  const auto add = [&](const std::string& name) {
    if (is_printable_utf8(name) && names.insert(name).second) return;
    throw ArgumentError(message("[save_networks] the names of the networks make '", excerpt(name),
                                "' twice or not printable, expected other names"));
  };
  for (const OnnxValueInfo& input : graph.inputs) add(input.name);
  for (const OnnxTensor& tensor : graph.initializers) add(tensor.name);
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& output : node.outputs) add(output);
  }
}

}  // namespace

void save_onnx(const std::string& path, const MappedModel& model) {
  write_onnx(path, onnx_from_networks(model));
}

}  // namespace mapping

OnnxModel onnx_from_networks(const MappedModel& model, const OnnxExportOptions& options) {
  bool bfloat16 = false;
  OnnxModel out;
  out.graph.name = "networks";
  for (const MappedNetwork& network : model.networks) {
    mapping::NetworkWriter(network, options, &out.graph).write();
    bfloat16 |= network.spec.dtype == DType::kBfloat16;
  }
  mapping::require_unequal_names(out.graph);
  out.ir_version = bfloat16 ? mapping::kIrOfBfloat16 : mapping::kIr;
  out.opsets[""] = bfloat16 ? mapping::kOpsetOfBfloat16 : mapping::kOpset;
  out.producer_name = "openrnn";
  for (const auto& [key, value] : mapping::text_values(model.values)) {
    if (key != "producer_name") out.metadata.emplace_back(key, value);
  }
  return out;
}

}  // namespace openrnn
