// Saver, Checkpoint, and what reads files without a model.
#include "base/message.h"
#include "openrnn/checkpoint.h"
#include "python/layers/layer_ref.h"
#include "python/support/network.h"
#include "python/train/optimizer_ref.h"

namespace openrnn::python {
namespace {

SaverItem saver_item(nb::handle item) {
  const Variable* variable = nullptr;
  if (nb::try_cast<const Variable*>(item, variable) && variable) return *variable;
  std::shared_ptr<SaveableObject> saveable;
  if (nb::try_cast<std::shared_ptr<SaveableObject>>(item, saveable) && saveable) return saveable;
  throw TypeError(
      message("[Saver] an item is ", quoted_type(item), ", expected a Variable or a saveable"));
}

void set_items(SaverOptions& options, nb::handle var_list) {
  if (var_list.is_none()) return;
  if (nb::isinstance<nb::dict>(var_list)) {
    options.by_name.emplace();
    for (const auto& [name, item] : nb::borrow<nb::dict>(var_list)) {
      (*options.by_name)[as_value<std::string>("a name of var_list", name)] = saver_item(item);
    }
  } else if (nb::isinstance<nb::list>(var_list) || nb::isinstance<nb::tuple>(var_list)) {
    options.variables.emplace();
    options.saveables.emplace();
    for (const nb::handle one : var_list) {
      const SaverItem item = saver_item(one);
      if (const auto* const variable = std::get_if<Variable>(&item)) {
        options.variables->push_back(*variable);
      } else {
        options.saveables->push_back(std::get<std::shared_ptr<SaveableObject>>(item));
      }
    }
  } else {
    throw TypeError(message("[Saver] var_list is ", quoted_type(var_list),
                            ", expected a list, a dict or None"));
  }
}

/// Its saves must not overlap: they count.
struct SaverRef {
  Saver saver;
  CallLock calls = {};
};

void bind_saver_class(nb::module_& m) {
  nb::class_<SaverRef>(m, "SaverBase", nb::dynamic_attr())
      .def(
          "__init__",
          [](nb::pointer_and_handle<SaverRef> self, nb::handle var_list, int max_to_keep) {
            SaverOptions options{.max_to_keep = max_to_keep};
            set_items(options, var_list);
            new (self.p) SaverRef{Saver(std::move(options))};
            // The Saver points to the graph.
            nb::keep_alive_obj(self.h, nb::cast(&Graph::current(), nb::rv_policy::reference));
          },
          "var_list"_any, "max_to_keep"_a)
      .def_prop_ro(
          "last_checkpoints",
          [](const SaverRef& self) {
            const auto lock = self.calls.take();
            return self.saver.last_checkpoints();
          },
          "The prefixes that this Saver wrote and kept, oldest first.")
      .def(
          "save_core",
          [](SaverRef& self, const std::string& path, std::optional<std::int64_t> global_step) {
            const auto lock = self.calls.take();
            return unlocked([&] { return self.saver.save(path, global_step); });
          },
          "path"_a, "global_step"_a.none())
      .def(
          "restore_core",
          [](const SaverRef& self, const std::string& prefix) {
            unlocked([&] { (void)self.saver.restore(prefix); });
          },
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
}

/// Its saves must not overlap: they count and remove.
struct ManagerRef {
  CheckpointManager manager;
  CallLock calls = {};
};

void bind_manager(nb::module_& m) {
  nb::class_<ManagerRef>(m, "CheckpointManagerBase")
      .def(
          "__init__",
          [](ManagerRef* self, const std::string& folder, int keep, const std::string& base) {
            new (self) ManagerRef{CheckpointManager(folder, {.keep = keep, .base = base})};
          },
          "folder"_a, "keep"_a, "base"_a)
      .def(
          "save_saver",
          [](ManagerRef& self, const SaverRef& saver, std::int64_t step) {
            const auto lock = self.calls.take();
            return unlocked([&] { return self.manager.save(saver.saver, step); });
          },
          "saver"_a, "step"_a)
      .def(
          "save_checkpoint",
          [](ManagerRef& self, const Checkpoint& checkpoint, std::int64_t step) {
            const auto lock = self.calls.take();
            return self.manager.save(
                [&](const std::string& prefix) { (void)checkpoint.write(prefix); }, step);
          },
          "checkpoint"_a, "step"_a)
      .def_prop_ro(
          "checkpoints",
          [](const ManagerRef& self) {
            const auto lock = self.calls.take();
            return self.manager.checkpoints();
          },
          "The prefixes that are kept, oldest first.")
      .def_prop_ro(
          "latest_checkpoint",
          [](const ManagerRef& self) {
            const auto lock = self.calls.take();
            return self.manager.latest();
          },
          "The newest prefix whose files are there; None when there is none.");
}

// Of a file, which may fit several modes.
nb::dict spec_dict(const RnnSpec& spec) {
  nb::dict result = network_dict(spec, [](const RnnField& field) {
    return field.group == FieldGroup::kNetwork && field.name != "rnn_mode";
  });
  result["num_proj"] = spec.num_proj;  // a number here always
  return result;
}

void bind_describe(nb::module_& m) {
  m.def(
      "describe_network",
      [](const std::string& prefix) {
        const CheckpointContents found =
            unlocked([&] { return describe_network(TensorBundleReader(prefix)); });
        nb::list networks;
        for (const NetworkDescription& network : found.networks) {
          nb::list modes;
          for (const RnnMode mode : network.modes) modes.append(to_string(mode));
          networks.append(nb::make_tuple(network.scope, modes, spec_dict(network.spec),
                                         network.raw_variable, network.text));
        }
        return std::pair(networks, found.remarks);
      },
      "prefix"_a,
      nb::sig("def describe_network(prefix: str) -> tuple[list[tuple[str, list[str], dict[str, "
              "typing.Any], str, str]], list[str]]"));
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
  nb::class_<CheckpointStatus>(
      m, "CheckpointStatus",
      "What a restore found.\n\n"
      "Examples\n--------\n"
      ">>> w = openrnn.Variable(1.0)\n"
      ">>> prefix = openrnn.train.Checkpoint(w=w).save(\"model\")\n"
      ">>> status = openrnn.train.Checkpoint(w=w, b=openrnn.Variable(0.0)).restore(prefix)\n"
      ">>> status.prefix, status.restored, status.missing\n"
      "('model-1', ['w/.ATTRIBUTES/VARIABLE_VALUE'], ['b'])")
      .def_ro("prefix", &CheckpointStatus::prefix)
      .def_prop_ro("restored", [](const CheckpointStatus& self) { return self.current().restored; })
      .def_prop_ro("missing", [](const CheckpointStatus& self) { return self.current().missing; })
      .def_prop_ro("unused", [](const CheckpointStatus& self) { return self.current().unused; })
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
      .def("restore_core", &Checkpoint::restore, "prefix"_a.none());
}

}  // namespace

void bind_saver(nb::module_& m) {
  bind_saver_class(m);
  bind_files(m);
  bind_checkpoint(m);
  bind_manager(m);
  bind_describe(m);
}

}  // namespace openrnn::python
