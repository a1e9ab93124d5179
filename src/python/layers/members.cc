// Weights, losses and updates of a layer.
#include "base/message.h"
#include "python/layers/layer_ref.h"

namespace openrnn::python {
namespace {

nb::list updates_list(const std::vector<UpdateFunction>& updates) {
  nb::list result;
  for (const UpdateFunction& update : updates) result.append(python_of(update));
  return result;
}

Variable add_weight(LayerRef& self, const std::string& name, nb::handle shape, nb::handle dtype,
                    nb::handle initializer, nb::handle regularizer, bool trainable,
                    nb::handle constraint) {
  const auto lock = self.exclusive();
  self.keep_graph();
  VariableOptions options;
  options.dtype = dtype.is_none() ? self.get().dtype() : as_dtype(dtype);
  options.initializer = as_initializer(initializer);
  if (!options.initializer && !is_floating(options.dtype)) {
    if (options.dtype == DType::kUInt8) {
      throw ArgumentError("[add_weight] there is no default initializer for uint8, expected one");
    }
    options.initializer = [](ArrayView, RandomStream&) {};  // zeros, as they come
  }
  options.regularizer = as_tensor_function(regularizer, "add_weight");
  options.trainable = trainable;
  options.constraint = as_tensor_function(constraint, "add_weight");
  return self.get().add_weight(name, as_shape("add_weight", shape), options);
}

void set_weights(LayerRef& self, nb::handle weights) {
  const auto lock = self.exclusive();
  const std::vector<Variable> variables = self.get().weights();
  if (!nb::isinstance<nb::list>(weights) && !nb::isinstance<nb::tuple>(weights)) {
    throw TypeError(message("[set_weights] ", quoted_type(weights), ", expected a list of arrays"));
  }
  std::vector<Array> values;
  std::size_t i = 0;
  for (const nb::handle weight : weights) {
    AsTensor how{.call = "set_weights"};
    if (i < variables.size()) how.dtype = variables[i].dtype();
    values.push_back(as_tensor(weight, how).to_host());
    ++i;
  }
  self.get().set_weights(values);
}

void add_loss(LayerRef& self, nb::handle loss, nb::handle inputs) {
  const std::vector<Tensor> of = as_inputs(inputs, {.call = "add_loss"});
  if (PyCallable_Check(loss.ptr()) && !nb::isinstance<Tensor>(loss)) {
    if (!of.empty()) {
      return self.get().add_loss(as_tensor(loss(), {.call = "add_loss"}), of);
    }
    return self.get().add_loss([kept = Kept(nb::borrow(loss))] {
      const nb::gil_scoped_acquire lock;
      return as_tensor(kept.get()(), {.call = "add_loss"});
    });
  }
  self.get().add_loss(as_tensor(loss, {.call = "add_loss", .dtype = self.get().dtype()}), of);
}

}  // namespace

void PythonUpdate::operator()() const {
  const nb::gil_scoped_acquire lock;
  if (PyCallable_Check(function.get().ptr())) function.get()();
}

nb::object python_of(const std::function<void()>& update) {
  if (const auto* python = update.target<PythonUpdate>()) {
    return nb::borrow(python->function.get());
  }
  return nb::cpp_function([update] { update(); });
}

void bind_layer_weights(nb::class_<LayerRef>& layer, nb::module_& m) {
  const auto all = [](const LayerRef& self) { return self.get().weights(); };
  const auto trainable = [](const LayerRef& self) { return self.get().trainable_weights(); };
  const auto others = [](const LayerRef& self) { return self.get().non_trainable_weights(); };
  layer.def_prop_ro("weights", all, "Those that are trainable, then the others.")
      .def_prop_ro("variables", all)
      .def_prop_ro("trainable_weights", trainable)
      .def_prop_ro("trainable_variables", trainable)
      .def_prop_ro("non_trainable_weights", others)
      .def_prop_ro("non_trainable_variables", others)
      .def(
          "count_params", [](const LayerRef& self) { return self.get().count_params(); },
          "Number of elements of all weights. Raises ValueError before the layer is built.")
      .def(
          "get_weights",
          [](const LayerRef& self) {
            nb::list result;
            for (const Variable& variable : self.get().weights()) {
              result.append(as_numpy(variable.read()).attr("copy")());
            }
            return result;
          },
          nb::sig("def get_weights(self) -> list[NDArray[typing.Any]]"),
          "The values of `weights`, as arrays of the caller's own.")
      .def("set_weights", &set_weights, "weights"_any,
           nb::sig("def set_weights(self, weights: typing.Sequence[object]) -> None"),
           "Changes the values of `weights`. Raises ValueError for a wrong number or shape; then "
           "nothing is changed.");
  m.def("layer_add_weight", &add_weight, "layer"_a, "name"_a, "shape"_any, "dtype"_any,
        "initializer"_any, "regularizer"_any, "trainable"_a, "constraint"_any);
}

void bind_layer_losses(nb::class_<LayerRef>& layer, nb::module_& m) {
  layer
      .def_prop_rw(
          "activity_regularizer",
          [](const LayerRef& self) { return python_of(self.get().activity_regularizer()); },
          [](LayerRef& self, nb::handle regularizer) {
            self.get().set_activity_regularizer(
                as_tensor_function(regularizer, "activity_regularizer"));
          },
          nb::arg("regularizer").none(),
          nb::for_getter(nb::sig("def activity_regularizer(self) -> typing.Any")),
          nb::for_setter(
              nb::sig("def activity_regularizer(self, regularizer: typing.Any, /) -> None")),
          "A function of each output of each call; what it returns is a loss. Default None.")
      .def_prop_ro(
          "losses", [](const LayerRef& self) { return self.get().losses(); },
          "Those added, those of regularizers, and those of the latest call.")
      .def_prop_ro(
          "updates", [](const LayerRef& self) { return updates_list(self.get().updates()); },
          nb::sig("def updates(self) -> list[typing.Any]"),
          "What is to be run after a training step; empty when the layer is neither "
          "trainable nor stateful.");
  m.def("layer_add_loss", &add_loss, "layer"_a, "loss"_any, "inputs"_any);
  m.def(
      "layer_has_call_losses", [](const LayerRef& self) { return self.get().has_call_losses(); },
      "layer"_a);
  m.def(
      "layer_get_losses_for",
      [](const LayerRef& self, nb::handle inputs) {
        return self.get().get_losses_for(as_inputs(inputs, {.call = "get_losses_for"}));
      },
      "layer"_a, "inputs"_any);
  m.def(
      "layer_add_update",
      [](LayerRef& self, nb::object update, nb::handle inputs) {
        self.get().add_update(PythonUpdate{Kept(std::move(update))},
                              as_inputs(inputs, {.call = "add_update"}));
      },
      "layer"_a, "update"_any, "inputs"_any);
  m.def(
      "layer_get_updates_for",
      [](const LayerRef& self, nb::handle inputs) {
        return updates_list(
            self.get().get_updates_for(as_inputs(inputs, {.call = "get_updates_for"})));
      },
      "layer"_a, "inputs"_any,
      nb::sig("def layer_get_updates_for(layer: LayerBase, inputs: object) -> list[typing.Any]"));
}

}  // namespace openrnn::python
