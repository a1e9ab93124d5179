#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/onnx/facts.h"
#include "mapping/onnx/values/attributes.h"
#include "mapping/onnx/values/moves.h"
#include "onnx/recurrent.h"
#include "openrnn/onnx.h"

namespace openrnn {

namespace onnx {

namespace {

using Values = std::unordered_map<std::string_view, std::shared_ptr<const Array>>;

// All of them.
std::array<std::span<const KernelRow>, 5> kernels() {
  return {arithmetic_kernels(), function_kernels(), convolution_kernels(), padding_kernels(),
          reduce_kernels()};
}

const KernelRow* find_kernel(const OnnxNode& node) {
  if (!node.domain.empty()) return nullptr;
  for (const auto rows : onnx::kernels()) {
    for (const KernelRow& row : rows) {
      if (row.op_type == node.op_type) return &row;
    }
  }
  return nullptr;
}

// A node with what computes it.
struct Step {
  const OnnxNode* node;
  const KernelRow* kernel = nullptr;
  std::shared_ptr<RecurrentKernel> recurrent = nullptr;
  /// Names that no later node and no output takes.
  std::vector<std::string_view> last_uses = {};
};

std::vector<const Array*> inputs_of(const OnnxNode& node, const Values& values) {
  std::vector<const Array*> inputs;
  for (const std::string& name : node.inputs) {
    inputs.push_back(name.empty() ? nullptr : values.at(name).get());
  }
  return inputs;
}

}  // namespace

}  // namespace onnx

using namespace onnx;  // NOLINT: the program is made of that room

struct OnnxProgram::Impl {
  explicit Impl(const OnnxModel& from) : model(from), opset(from.opset()) {
    find_inputs();
    for (const OnnxNode& node : model.graph.nodes) add_step(node);
    check_outputs();
    find_last_uses();
  }

  void find_inputs();
  void add_step(const OnnxNode& node);
  void add_initializer(const std::string& name);
  void pack_constants(Step* step);
  void check_outputs();
  void find_last_uses();
  Values given_values(const std::map<std::string, ConstArrayView>& given) const;
  std::vector<Array> compute(const Step& step, const Values& values) const;
  void run_step(const Step& step, Values* values) const;

  OnnxModel model;
  std::int64_t opset;
  std::vector<OnnxValueInfo> inputs;
  std::unordered_map<std::string_view, const OnnxTensor*> initializers;
  /// What nodes take, where it is an initializer.
  Values constants;
  std::set<std::string_view> known;
  std::vector<Step> steps;
};

void OnnxProgram::Impl::find_inputs() {
  for (const OnnxTensor& tensor : model.graph.initializers) {
    initializers.emplace(tensor.name, &tensor);
    known.insert(tensor.name);
  }
  for (const OnnxValueInfo& input : model.graph.inputs) {
    known.insert(input.name);
    if (!initializers.count(input.name)) inputs.push_back(input);
  }
}

void OnnxProgram::Impl::add_initializer(const std::string& name) {
  const auto found = initializers.find(name);
  if (found == initializers.end() || constants.count(name)) return;
  constants.emplace(found->first, std::make_shared<const Array>(found->second->array()));
}

void OnnxProgram::Impl::add_step(const OnnxNode& node) {
  Step step{.node = &node};
  if (mapping::find_recurrent(node)) {
    step.recurrent = std::make_shared<RecurrentKernel>(node);
  } else if ((step.kernel = find_kernel(node))) {
    // `consumed_inputs` is of the first versions, and says nothing.
    std::vector<std::string_view> heeded = step.kernel->attributes;
    heeded.push_back("consumed_inputs");
    mapping::require_known_attributes(node, heeded);
  } else if (!mapping::is_move(node)) {
    mapping::refuse_node(node, message("no program runs this operator",
                                       node.domain.empty() ? "" : " of another domain",
                                       ", expected one of ", listed(onnx_operators())));
  }
  for (const std::string& name : node.inputs) {
    if (name.empty()) continue;
    if (!known.count(name)) {
      throw ArgumentError(message("[OnnxProgram] node '", excerpt(node.label()), "' takes '",
                                  excerpt(name),
                                  "', which no input, initializer or node before it "
                                  "makes"));
    }
    add_initializer(name);
  }
  for (const std::string& name : node.outputs) {
    if (!name.empty()) known.insert(name);
  }
  if (step.recurrent) pack_constants(&step);
  steps.push_back(std::move(step));
}

// An initializer that is an input, too, may be given another value in a call.
void OnnxProgram::Impl::pack_constants(Step* step) {
  const OnnxNode& node = *step->node;
  std::vector<const Array*> arrays(8, nullptr);
  for (const std::size_t index : {1, 2, 3, 7}) {
    const std::string& name = node.input(index);
    if (name.empty()) continue;
    const auto found = constants.find(name);
    const bool open = std::any_of(model.graph.inputs.begin(), model.graph.inputs.end(),
                                  [&](const OnnxValueInfo& input) { return input.name == name; });
    if (found == constants.end() || open) return;
    arrays[index] = found->second.get();
  }
  if (arrays[1] && arrays[2]) step->recurrent->pack(weights_of({node, opset, arrays}));
}

void OnnxProgram::Impl::check_outputs() {
  for (const OnnxValueInfo& output : model.graph.outputs) {
    add_initializer(output.name);
    if (known.count(output.name)) continue;
    throw ArgumentError(message("[OnnxProgram] the output '", excerpt(output.name),
                                "' is made by no node, expected one that makes it"));
  }
}

void OnnxProgram::Impl::find_last_uses() {
  std::set<std::string_view> needed;
  for (const OnnxValueInfo& output : model.graph.outputs) needed.insert(output.name);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    for (const auto& names : {step->node->inputs, step->node->outputs}) {
      for (const std::string& name : names) {
        const auto view = known.find(name);
        if (view != known.end() && needed.insert(*view).second) step->last_uses.push_back(*view);
      }
    }
  }
}

Values OnnxProgram::Impl::given_values(const std::map<std::string, ConstArrayView>& given) const {
  Values values = constants;
  for (const auto& [name, view] : given) {
    const auto found =
        std::find_if(model.graph.inputs.begin(), model.graph.inputs.end(),
                     [&name = name](const OnnxValueInfo& input) { return input.name == name; });
    if (found == model.graph.inputs.end()) {
      throw ArgumentError(message("[run] '", excerpt(name),
                                  "' is given, expected inputs of the "
                                  "graph"));
    }
    const std::optional<DType> dtype = dtype_of_onnx(found->element_type);
    if (found->element_type && (!dtype || *dtype != view.dtype)) {
      throw ArgumentError(message("[run] '", excerpt(name), "' is ", dtype_name(view.dtype),
                                  ", expected ", dtype ? dtype_name(*dtype) : "another type"));
    }
    values.insert_or_assign(found->name, std::make_shared<const Array>(view));
  }
  for (const OnnxValueInfo& input : inputs) {
    if (values.count(input.name)) continue;
    throw ArgumentError(message("[run] '", excerpt(input.name), "' is not given, expected it"));
  }
  return values;
}

std::vector<Array> OnnxProgram::Impl::compute(const Step& step, const Values& values) const {
  const OnnxNode& node = *step.node;
  const std::vector<const Array*> arrays = inputs_of(node, values);
  const KernelCall call{node, opset, arrays};
  try {
    if (step.recurrent) return step.recurrent->compute(call);
    if (step.kernel) return step.kernel->compute(call);
    mapping::MemoryBudget free;
    return mapping::compute_move(node, arrays, &free);
  } catch (const ArgumentError& error) {
    throw ArgumentError(
        message("[run] node '", excerpt(node.label()), "' (", node.op_type, "): ", error.what()));
  }
}

void OnnxProgram::Impl::run_step(const Step& step, Values* values) const {
  std::vector<Array> outputs = compute(step, *values);
  const std::vector<std::string>& names = step.node->outputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    if (i >= outputs.size()) {
      mapping::refuse_node(
          *step.node, message("it has ", outputs.size(), " outputs here, expected ", "no more"));
    }
    values->insert_or_assign(names[i], std::make_shared<const Array>(std::move(outputs[i])));
  }
  for (const std::string_view name : step.last_uses) values->erase(name);
}

OnnxProgram::OnnxProgram(const std::string& path) : OnnxProgram(read_onnx(path)) {}
OnnxProgram::OnnxProgram(const OnnxModel& model) : impl_(std::make_unique<Impl>(model)) {}
OnnxProgram::~OnnxProgram() = default;
OnnxProgram::OnnxProgram(OnnxProgram&&) noexcept = default;
OnnxProgram& OnnxProgram::operator=(OnnxProgram&&) noexcept = default;

const std::vector<OnnxValueInfo>& OnnxProgram::inputs() const noexcept { return impl_->inputs; }
const std::vector<OnnxValueInfo>& OnnxProgram::outputs() const noexcept {
  return impl_->model.graph.outputs;
}

std::map<std::string, Array> OnnxProgram::run(
    const std::map<std::string, ConstArrayView>& inputs) const {
  Values values = impl_->given_values(inputs);
  for (const Step& step : impl_->steps) impl_->run_step(step, &values);
  std::map<std::string, Array> outputs;
  for (const OnnxValueInfo& output : impl_->model.graph.outputs) {
    outputs.emplace(output.name, *values.at(output.name));
  }
  return outputs;
}

std::vector<std::string> onnx_operators() {
  std::vector<std::string> names{"GRU", "LSTM", "RNN"};
  for (const auto rows : onnx::kernels()) {
    for (const KernelRow& row : rows) names.emplace_back(row.op_type);
  }
  for (const std::string_view name : mapping::move_names()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace openrnn
