// What recorded calls, and so models, are copied and pickled by: each call as data.
#include "base/message.h"
#include "graph/graph_state.h"
#include "openrnn/ops_cudnn.h"
#include "ops/symbolic/replay.h"
#include "python/layers/node_ref.h"

namespace openrnn::python {
namespace {

// ---- Attributes

nb::object python_attribute(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> nb::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::shared_ptr<CallState>>) {
          return nb::cast(std::dynamic_pointer_cast<ops::CudnnModelState>(value));
        } else {
          return nb::cast(value);
        }
      },
      attribute);
}

Attribute attribute_of(nb::handle value) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (PyLong_Check(value.ptr())) return nb::cast<std::int64_t>(value);
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  if (PyList_Check(value.ptr())) return nb::cast<std::vector<std::int64_t>>(value);
  if (value.is_none()) return std::shared_ptr<CallState>();
  return std::shared_ptr<CallState>(nb::cast<std::shared_ptr<ops::CudnnModelState>>(value));
}

// ---- Calls

[[noreturn]] void refuse(const SymbolicCall& call, const char* why) {
  throw TypeError(message("[Model] the recorded call of '", call.op,
                          "' is to be copied or pickled, expected one that can be: ", why));
}

// What a call of a layer does in place of its class, None where nothing.
nb::object python_function(const SymbolicCall& call) {
  if (!call.function) return nb::none();
  const auto* const python = call.function.target<PythonCall>();
  if (!python) refuse(call, "what it computes was given in C++");
  return nb::borrow(python->function.get());
}

nb::object python_layer(const SymbolicCall& call) {
  if (!call.computed_by) return nb::none();
  Layer* const layer = call.computed_by->layer;
  const std::shared_ptr<Layer> shared = layer ? layer->weak_from_this().lock() : nullptr;
  if (!shared) refuse(call, "its layer is gone");
  return wrap_layer(shared);
}

// (op, inputs, outputs, attributes, layer, whether it is a node of the layer, function, variable,
// training)
nb::tuple node_state(const NodeRef& self) {
  const SymbolicCall& call = *self.call;
  const bool is_input = !call.run, reads = !call.variable.empty();
  if (!call.attributes && !is_input && !reads) {
    refuse(call, call.layer ? "the cell makes its variables in a __call__() of its own"
                            : "what it computes is known to C++ alone");
  }
  nb::list inputs, outputs, attributes;
  for (const Tensor& input : call.inputs) {
    inputs.append(input.empty() ? nb::none() : nb::cast(input));
  }
  for (const TensorSpec& spec : call.outputs) {
    outputs.append(nb::make_tuple(dtype_name(spec.dtype), spec.shape));
  }
  for (const Attribute& attribute : call.attributes.value_or(Attributes{})) {
    attributes.append(python_attribute(attribute));
  }
  return nb::make_tuple(call.op, inputs, outputs, is_input ? nb::none() : nb::object(attributes),
                        python_layer(call), call.layer != nullptr, python_function(call),
                        reads ? nb::cast(call.variable) : nb::none(), nb::cast(call.training));
}

std::vector<Tensor> tensors_of(const nb::list& given) {
  std::vector<Tensor> tensors;
  for (const nb::handle one : given) {
    tensors.push_back(one.is_none() ? Tensor() : nb::cast<Tensor>(one));
  }
  return tensors;
}

std::vector<TensorSpec> specs_of(const nb::list& given) {
  std::vector<TensorSpec> specs;
  for (const nb::handle one : given) {
    const auto [dtype, shape] = nb::cast<std::pair<std::string, Shape>>(one);
    specs.push_back({parse_dtype(dtype), shape});
  }
  return specs;
}

nb::object made_node(const std::string& op, const nb::list& inputs, const nb::list& outputs,
                     nb::handle attributes, nb::handle layer, bool is_node, nb::handle function,
                     nb::handle variable, std::optional<bool> training) {
  SymbolicCall call{
      .op = op, .inputs = tensors_of(inputs), .outputs = specs_of(outputs), .training = training};
  if (!attributes.is_none()) {
    call.attributes.emplace();
    for (const nb::handle one : attributes) call.attributes->push_back(attribute_of(one));
  }
  std::vector<Tensor> made;
  if (!variable.is_none()) {
    made = {defer_read(nb::cast<Variable>(variable))};
  } else if (!layer.is_none()) {
    auto& ref = nb::cast<LayerRef&>(layer);
    if (is_node) call.layer = ref.get().handle();
    if (!function.is_none()) call.function = PythonCall{Kept(nb::borrow(function))};
    ref.keep_graph();
    made = ref.get().record_again(call);
  } else if (!call.attributes) {
    const TensorSpec& spec = call.outputs.at(0);
    made = {Input(spec.shape, spec.dtype, op)};
  } else {
    made = ops::record_operation(op, call.inputs, call.outputs, *call.attributes);
  }
  return wrap_node(made.at(0).symbol()->call, made[0].symbol()->owner);
}

Tensor node_output(const NodeRef& self, std::size_t index, int layout) {
  Tensor made = self.outputs().at(index);
  return std::move(made).with_state_layout(static_cast<StateLayout>(layout));
}

void bind_model_state(nb::module_& m) {
  nb::class_<ops::CudnnModelState>(m, "OpModelState", "What the calls of one op-level model share.")
      .def(
          "__reduce__",
          [](const ops::CudnnModelState& self) {
            return nb::make_tuple(
                nb::module_::import_("openrnn._copies").attr("make_op_model_state"),
                nb::make_tuple(self.dropout.seed(), self.dropout.calls()));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
  m.def(
      "op_model_state",
      [](std::uint64_t seed, std::uint64_t calls) {
        auto state = std::make_shared<ops::CudnnModelState>();
        state->dropout = ops::DropoutState::of(seed, calls);
        return state;
      },
      "seed"_a, "calls"_a);
}

void bind_model_parts(nb::module_& m) {
  m.def(
      "model_calls",
      [](const LayerRef& self) {
        nb::list calls;
        for (const auto& call : self.as<Model>("Model").recorded_calls()) {
          calls.append(wrap_node(call));
        }
        return calls;
      },
      "model"_a, nb::sig("def model_calls(model: LayerBase) -> list[Node]"));
  m.def(
      "model_losses",
      [](const LayerRef& self) {
        nb::list losses;
        for (const auto& loss : self.as<Model>("Model").recorded_losses()) {
          losses.append(
              nb::make_tuple(wrap_layer(loss.layer), loss.value, loss.inputs, loss.by_call));
        }
        return losses;
      },
      "model"_a, nb::sig("def model_losses(model: LayerBase) -> list[typing.Any]"));
  m.def(
      "model_add_losses",
      [](const nb::list& given) {
        std::vector<Model::SymbolicLoss> losses;
        for (const nb::handle one : given) {
          const auto& layer = nb::cast<const LayerRef&>(nb::object(one[0]));
          losses.push_back({layer.share(), nb::cast<Tensor>(nb::object(one[1])),
                            nb::cast<std::vector<Tensor>>(nb::object(one[2])),
                            nb::cast<bool>(nb::object(one[3]))});
        }
        Model::add_losses(losses);
      },
      "losses"_a, nb::sig("def model_add_losses(losses: list[typing.Any]) -> None"));
}

}  // namespace

void bind_recorded(nb::class_<NodeRef>& node, nb::module_& m) {
  node.def(
          "__reduce__",
          [](const NodeRef& self) {
            return nb::make_tuple(nb::module_::import_("openrnn._copies").attr("make_node"),
                                  node_state(self));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def(
          "__deepcopy__",
          [](nb::handle self, nb::handle memo) {
            return nb::module_::import_("openrnn._copies").attr("deep_copy_node")(self, memo);
          },
          "memo"_a, nb::sig("def __deepcopy__(self, memo: dict[int, typing.Any]) -> Node"));
  bind_model_state(m);
  m.def(
      "node_graph",
      [](const NodeRef& self) -> nb::object {
        if (!graph::is_alive(self.call->graph_id)) return nb::none();
        return nb::cast(self.call->graph, nb::rv_policy::reference);
      },
      "node"_a, nb::sig("def node_graph(node: Node) -> Graph | None"));
  m.def("made_node", &made_node, "op"_a, "inputs"_a, "outputs"_a, "attributes"_any, "layer"_any,
        "is_node"_a, "function"_any, "variable"_any, "training"_a = nb::none(),
        nb::sig("def made_node(op: str, inputs: list[typing.Any], outputs: list[typing.Any], "
                "attributes: list[typing.Any] | None, layer: LayerBase | None, is_node: bool, "
                "function: typing.Any, variable: Variable | None, training: bool | None = None) "
                "-> Node"));
  m.def("node_output", &node_output, "node"_a, "index"_a, "layout"_a);
  m.def(
      "symbolic_state",
      [](const Tensor& tensor) {
        return nb::make_tuple(wrap_node(tensor.symbol()->call, tensor.symbol()->owner),
                              tensor.symbol()->index, static_cast<int>(tensor.state_layout()));
      },
      "tensor"_a, nb::sig("def symbolic_state(tensor: Tensor) -> tuple[Node, int, int]"));
  bind_model_parts(m);
}

}  // namespace openrnn::python
