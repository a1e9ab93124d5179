// Saver, Checkpoint, and what reads files without a model.
#include "base/message.h"
#include "openrnn/checkpoint.h"
#include "python/layers/layer_ref.h"
#include "python/train/optimizer_ref.h"

namespace openrnn::python {
namespace {

/// A variable under another name than its own.
class RenamedVariable : public SaveableObject {
 public:
  RenamedVariable(std::string name, Variable variable)
      : name_(std::move(name)), variable_(std::move(variable)) {}
  const std::string& name() const override { return name_; }
  const Variable& variable() const override { return variable_; }
  std::vector<std::string> spec_names() const override { return {name_}; }
  std::vector<Array> to_tensors(const ConstArrayView& value) const override {
    return {Array(value)};
  }
  Array from_tensors(const std::vector<Array>& tensors) const override {
    const Array& tensor = tensors.at(0);
    if (tensor.shape() != variable_.shape() || tensor.dtype() != variable_.dtype()) {
      throw ArgumentError(message("[restore] '", name_, "' is ", dtype_name(tensor.dtype()),
                                  " of shape ", to_string(tensor.shape()), ", expected ",
                                  dtype_name(variable_.dtype()), " of shape ",
                                  to_string(variable_.shape())));
    }
    return tensor;
  }

 private:
  std::string name_;
  Variable variable_;
};

void add_item(SaverOptions& options, const std::string& name, nb::handle item) {
  const Variable* variable = nullptr;
  if (nb::try_cast<const Variable*>(item, variable) && variable) {
    if (name.empty() || name == variable->name()) return options.variables->push_back(*variable);
    options.saveables->push_back(std::make_shared<RenamedVariable>(name, *variable));
    return;
  }
  std::shared_ptr<SaveableObject> saveable;
  if (nb::try_cast<std::shared_ptr<SaveableObject>>(item, saveable) && saveable) {
    return options.saveables->push_back(std::move(saveable));
  }
  throw TypeError(
      message("[Saver] an item is ", quoted_type(item), ", expected a Variable or a saveable"));
}

SaverOptions saver_options(nb::handle var_list) {
  SaverOptions options;
  if (var_list.is_none()) return options;
  options.variables.emplace();
  options.saveables.emplace();
  if (nb::isinstance<nb::dict>(var_list)) {
    for (const auto& [name, item] : nb::borrow<nb::dict>(var_list)) {
      add_item(options, nb::cast<std::string>(name), item);
    }
  } else if (nb::isinstance<nb::list>(var_list) || nb::isinstance<nb::tuple>(var_list)) {
    for (const nb::handle item : var_list) add_item(options, "", item);
  } else {
    throw TypeError(message("[Saver] var_list is ", quoted_type(var_list),
                            ", expected a list, a dict or None"));
  }
  return options;
}

void bind_saver_class(nb::module_& m) {
  nb::class_<Saver>(m, "SaverBase", nb::dynamic_attr())
      .def(
          "__init__",
          [](nb::pointer_and_handle<Saver> self, nb::handle var_list) {
            new (self.p) Saver(saver_options(var_list));
            // The Saver points to the graph.
            nb::keep_alive_obj(self.h, nb::cast(&Graph::current(), nb::rv_policy::reference));
          },
          "var_list"_any)
      .def(
          "write",
          [](const Saver& self, const std::string& prefix) {
            unlocked([&] { self.save(prefix); });
          },
          "prefix"_a)
      .def(
          "read",
          [](const Saver& self, const std::string& prefix) {
            unlocked([&] { (void)self.restore(prefix); });
          },
          "prefix"_a);
  m.def(
      "remove_tensor_bundle", [](const std::string& prefix) { remove_tensor_bundle(prefix); },
      "prefix"_a);
  m.def("latest_checkpoint", &latest_checkpoint, "checkpoint_dir"_a);
  m.def(
      "read_checkpoint_state",
      [](const std::string& folder)
          -> std::optional<std::pair<std::string, std::vector<std::string>>> {
        const auto state = read_checkpoint_state(folder);
        if (!state) return std::nullopt;
        return std::pair(state->latest, state->all);
      },
      "folder"_a);
  m.def(
      "write_checkpoint_state",
      [](const std::string& folder, const std::string& latest,
         const std::vector<std::string>& all) {
        write_checkpoint_state(folder, {.latest = latest, .all = all});
      },
      "folder"_a, "latest"_a, "all"_a);
}

void bind_files(nb::module_& m) {
  m.def(
      "list_variables",
      [](const std::string& prefix) {
        const TensorBundleReader reader(prefix);
        nb::list result;
        for (const TensorInfo& info : reader.tensors()) {
          result.append(nb::make_tuple(info.name, shape_list(info.shape)));
        }
        return result;
      },
      "prefix"_a, nb::sig("def list_variables(prefix: str) -> list[tuple[str, list[int]]]"));
  m.def(
      "load_variable",
      [](const std::string& prefix, const std::string& name) -> nb::object {
        const TensorValue value = TensorBundleReader(prefix).read_value(name);
        if (const auto* array = std::get_if<Array>(&value)) return as_numpy(*array);
        const auto& strings = std::get<StringTensor>(value);
        nb::list items;
        for (const std::string& text : strings.values)
          items.append(nb::bytes(text.data(), text.size()));
        return numpy()
            .attr("array")(items, "dtype"_a = "object")
            .attr("reshape")(shape_tuple(strings.shape));
      },
      "prefix"_a, "name"_a,
      nb::sig("def load_variable(prefix: str, name: str) -> NDArray[typing.Any]"));
}

Trackable as_trackable(nb::handle object) {
  const Variable* variable = nullptr;
  if (nb::try_cast<const Variable*>(object, variable) && variable) return Trackable(*variable);
  const LayerRef* layer = nullptr;
  if (nb::try_cast<const LayerRef*>(object, layer) && layer) return Trackable(layer->get());
  OptimizerRef* optimizer = nullptr;
  if (nb::try_cast<OptimizerRef*>(object, optimizer) && optimizer) {
    return optimizer->core->trackable();
  }
  std::shared_ptr<SaveableObject> saveable;
  if (nb::try_cast<std::shared_ptr<SaveableObject>>(object, saveable) && saveable) {
    return Trackable(std::dynamic_pointer_cast<const ObjectSaveable>(saveable));
  }
  if (nb::isinstance<nb::dict>(object)) {
    NamedTrackables children;
    for (const auto& [name, child] : nb::borrow<nb::dict>(object)) {
      children.emplace_back(nb::cast<std::string>(name), as_trackable(child));
    }
    return Trackable(std::move(children));
  }
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    std::vector<Trackable> items;
    for (const nb::handle item : object) items.push_back(as_trackable(item));
    return Trackable::list(std::move(items));
  }
  if (nb::isinstance<Checkpoint>(object)) {
    return as_trackable(object.attr("objects"));
  }
  throw TypeError(message("[Checkpoint] an object is ", quoted_type(object),
                          ", expected a Variable, layer, optimizer, saveable, list or dict"));
}

void bind_checkpoint(nb::module_& m) {
  nb::class_<CheckpointStatus>(m, "CheckpointStatus", "What a restore found.")
      .def_ro("prefix", &CheckpointStatus::prefix)
      .def_ro("restored", &CheckpointStatus::restored)
      .def_ro("missing", &CheckpointStatus::missing)
      .def_ro("unused", &CheckpointStatus::unused)
      .def("assert_consumed", &CheckpointStatus::assert_consumed, nb::rv_policy::copy)
      .def("assert_existing_objects_matched", &CheckpointStatus::assert_existing_objects_matched,
           nb::rv_policy::copy)
      .def("assert_nontrivial_match", &CheckpointStatus::assert_nontrivial_match,
           nb::rv_policy::copy);
  nb::class_<Checkpoint>(m, "CheckpointBase", nb::dynamic_attr())
      .def(
          "__init__",
          [](Checkpoint* self, const nb::dict& objects) {
            NamedTrackables named;
            for (const auto& [name, object] : objects) {
              named.emplace_back(nb::cast<std::string>(name), as_trackable(object));
            }
            new (self) Checkpoint(std::move(named));
          },
          "objects"_a, nb::sig("def __init__(self, objects: dict[str, typing.Any]) -> None"))
      .def_prop_ro("save_counter", &Checkpoint::save_counter)
      .def("write_core", &Checkpoint::write, "prefix"_a)
      .def("save_core", &Checkpoint::save, "prefix"_a)
      .def("read_core", &Checkpoint::read, "prefix"_a)
      .def("restore_core", &Checkpoint::restore, "prefix"_a);
}

}  // namespace

void bind_saver(nb::module_& m) {
  bind_saver_class(m);
  bind_files(m);
  bind_checkpoint(m);
}

}  // namespace openrnn::python
