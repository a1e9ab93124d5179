// What copies and pickles of layers, variables and optimizers are made of.
#include "base/message.h"
#include "graph/scope_stack.h"
#include "openrnn/cells_layer_norm.h"
#include "python/layers/layer_ref.h"
#include "python/train/optimizer_ref.h"

namespace openrnn::python {
namespace {

// ---- Variables

nb::tuple variable_state(const Variable& variable) {
  return nb::make_tuple(variable.name(), as_numpy(variable.read()), variable.made_trainable(),
                        device_str(variable.device()), python_of(variable.constraint()));
}

// Under its full name where that is free, whatever scope is open.
Variable copied_variable(const std::string& name, nb::handle value, bool trainable,
                         nb::handle device, nb::handle constraint) {
  const graph::ReopenedScope top("", false);
  Graph& graph = Graph::current();
  std::string free = name;
  for (int n = 1; graph.has_variable(free); ++n) free = message(name, "_", n);
  const Array array = as_tensor(value, {.call = "Variable"}).to_host();
  Variable made(free, array, trainable, as_device(device));
  made.set_constraint(as_tensor_function(constraint, "Variable"));
  return made;
}

// ---- Layers

ops::DropoutState* dropout_of(Layer& layer) {
  if (auto* rnn = dynamic_cast<layers::CudnnRnn*>(&layer)) return &rnn->dropout_state();
  if (auto* dropout = dynamic_cast<layers::Dropout*>(&layer)) return &dropout->dropout_state();
  if (auto* wrapper = dynamic_cast<DropoutWrapper*>(&layer)) return &wrapper->dropout_state();
  if (auto* cell = dynamic_cast<LayerNormBasicLSTMCell*>(&layer)) return &cell->dropout_state();
  return nullptr;
}

nb::dict layer_state(const LayerRef& self) {
  const LayerState state = self.get().state();
  nb::dict result;
  result["name"] = state.name;
  result["named"] = state.named;
  result["trainable"] = state.trainable;
  result["stateful"] = state.stateful;
  result["built"] = state.built;
  result["scope"] = state.scope;
  result["saveable_scope"] = state.saveable_scope;
  result["input_shape"] = nb::cast(state.input_shape);
  result["weights"] = nb::cast(state.weights);
  result["weight_names"] = nb::cast(state.weight_names);
  nb::list regularizers;
  for (const auto& [place, regularizer] : state.regularizers) {
    regularizers.append(nb::make_tuple(place, python_of(regularizer)));
  }
  result["regularizers"] = regularizers;
  result["activity_regularizer"] = python_of(self.get().activity_regularizer());
  if (const ops::DropoutState* dropout = dropout_of(self.get())) {
    result["dropout"] = nb::make_tuple(dropout->seed(), dropout->calls());
  }
  return result;
}

LayerState state_of(const nb::dict& given) {
  LayerState state;
  state.name = nb::cast<std::string>(given["name"]);
  state.named = nb::cast<bool>(given["named"]);
  state.trainable = nb::cast<bool>(given["trainable"]);
  state.stateful = nb::cast<bool>(given["stateful"]);
  state.built = nb::cast<bool>(given["built"]);
  state.scope = nb::cast<std::string>(given["scope"]);
  state.saveable_scope = nb::cast<std::string>(given["saveable_scope"]);
  state.input_shape = nb::cast<Shape>(given["input_shape"]);
  state.weights = nb::cast<std::vector<Variable>>(given["weights"]);
  state.weight_names = nb::cast<std::vector<std::string>>(given["weight_names"]);
  for (const nb::handle pair : nb::cast<nb::list>(given["regularizers"])) {
    state.regularizers.emplace_back(nb::cast<std::size_t>(pair[0]),
                                    as_tensor_function(nb::object(pair[1]), "regularizer"));
  }
  return state;
}

void layer_take_over(LayerRef& self, const nb::dict& given) {
  self.keep_graph();
  Layer& layer = self.get();
  layer.set_activity_regularizer(
      as_tensor_function(nb::object(given["activity_regularizer"]), "activity_regularizer"));
  layer.take_over(state_of(given));
  ops::DropoutState* const dropout = dropout_of(layer);
  if (!dropout || !given.contains("dropout")) return;
  const auto [seed, calls] =
      nb::cast<std::pair<std::uint64_t, std::uint64_t>>(nb::object(given["dropout"]));
  *dropout = ops::DropoutState::of(seed, calls);
}

// ---- Optimizers

nb::tuple optimizer_state(const OptimizerRef& self) {
  const TrackedObject tracked = self.core->trackable().now();
  nb::list slots;
  for (const TrackedSlot& slot : tracked.slots) {
    slots.append(nb::make_tuple(slot.variable, slot.name, as_numpy(slot.slot.read())));
  }
  nb::dict scalars;
  for (const auto& [name, child] : tracked.children) {
    scalars[nb::str(name.c_str())] = as_numpy(child.now().variable.read());
  }
  return nb::make_tuple(self.core->learning_rate(), slots, scalars);
}

void assign_value(const Variable& variable, nb::handle value) {
  variable.assign(as_tensor(value, {.call = "optimizer", .dtype = variable.dtype()}).value());
}

void optimizer_take_over(const OptimizerRef& self, double learning_rate, const nb::list& slots,
                         const nb::dict& scalars) {
  self.core->set_learning_rate(learning_rate);
  std::vector<Variable> variables;
  for (const nb::handle slot : slots) variables.push_back(nb::cast<Variable>(slot[0]));
  self.core->prepare(variables);
  const TrackedObject tracked = self.core->trackable().now();
  for (const nb::handle slot : slots) {
    const auto of = nb::cast<Variable>(slot[0]);
    const auto name = nb::cast<std::string>(slot[1]);
    for (const TrackedSlot& made : tracked.slots) {
      if (made.variable.same_as(of) && made.name == name) {
        assign_value(made.slot, nb::object(slot[2]));
      }
    }
  }
  for (const auto& [name, child] : tracked.children) {
    if (scalars.contains(name.c_str())) {
      assign_value(child.now().variable, nb::object(scalars[name.c_str()]));
    }
  }
}

}  // namespace

void bind_copies(nb::module_& m) {
  m.def("variable_state", &variable_state, "variable"_a,
        nb::sig("def variable_state(variable: Variable) -> tuple[typing.Any, ...]"));
  m.def("copied_variable", &copied_variable, "name"_a, "value"_any, "trainable"_a, "device"_any,
        "constraint"_any);
  m.def("layer_state", &layer_state, "layer"_a,
        nb::sig("def layer_state(layer: LayerBase) -> dict[str, typing.Any]"));
  m.def("layer_take_over", &layer_take_over, "layer"_a, "state"_a,
        nb::sig("def layer_take_over(layer: LayerBase, state: dict[str, typing.Any]) -> None"));
  m.def("optimizer_state", &optimizer_state, "optimizer"_a,
        nb::sig("def optimizer_state(optimizer: OptimizerBase) -> tuple[typing.Any, ...]"));
  m.def("optimizer_take_over", &optimizer_take_over, "optimizer"_a, "learning_rate"_a, "slots"_a,
        "scalars"_a,
        nb::sig("def optimizer_take_over(optimizer: OptimizerBase, learning_rate: float, "
                "slots: list[typing.Any], scalars: dict[str, typing.Any]) -> None"));
}

}  // namespace openrnn::python
