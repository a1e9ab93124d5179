// Graphs, variable scopes and get_variable.
#include "graph/scope_stack.h"
#include "python/layers/layer_ref.h"

namespace openrnn::python {
namespace {

/// What a `with` statement holds open on its thread.
template <class Guard>
class Opened {
 public:
  Opened() = default;
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  template <class... Args>
  void open(Args&&... args) {
    guards_.push_back(std::make_unique<Guard>(std::forward<Args>(args)...));
  }
  void close() {
    if (!guards_.empty()) guards_.pop_back();
  }

 private:
  std::vector<std::unique_ptr<Guard>> guards_;
};
/// A new scope inside the current one, or one of that full name again.
struct Scope {
  Scope(const std::string& name, bool reuse) : inner(std::in_place, name, reuse) {}
  Scope(const std::string& full_name, bool reuse, std::nullptr_t)
      : again(std::in_place, full_name, reuse) {}
  std::optional<VariableScope> inner;
  std::optional<graph::ReopenedScope> again;
};
using OpenedScope = Opened<Scope>;
using OpenedGraph = Opened<Graph::AsDefault>;

Variable get_variable_from_python(const std::string& name, nb::handle shape, nb::handle dtype,
                                  nb::handle initializer, nb::handle regularizer, bool trainable,
                                  nb::handle constraint) {
  VariableOptions options;
  options.dtype = as_dtype(dtype);
  options.initializer = as_initializer(initializer);
  options.trainable = trainable;
  options.regularizer = as_tensor_function(regularizer, "get_variable");
  options.constraint = as_tensor_function(constraint, "get_variable");
  return get_variable(name, as_shape("get_variable", shape), options);
}

void bind_graph_class(nb::module_& m) {
  nb::class_<Graph>(m, "Graph", nb::is_weak_referenceable(), nb::dynamic_attr(),
                    "The registry that variables, scopes and collections live in.")
      .def(nb::init<>())
      .def("variables", &Graph::variables, "In order of creation.")
      .def("trainable_variables", &Graph::trainable_variables)
      .def("regularization_losses", &Graph::regularization_losses)
      .def("saveables", &Graph::saveables)
      .def("add_saveable", &Graph::add_saveable, "saveable"_a)
      .def(
          "add_regularization_loss",
          [](Graph& self, nb::object loss) {
            if (!PyCallable_Check(loss.ptr())) {
              const Tensor value = as_tensor(loss, {.call = "add_to_collection"});
              return self.add_regularization_loss([value] { return value; });
            }
            self.add_regularization_loss([kept = Kept(std::move(loss))] {
              const nb::gil_scoped_acquire lock;
              return as_tensor(kept.get()(), {.call = "regularization loss"});
            });
          },
          "loss"_any)
      .def(
          "updates",
          [](const Graph& self) {
            nb::list result;
            for (const auto& update : self.updates()) result.append(python_of(*update));
            return result;
          },
          nb::sig("def updates(self) -> list[typing.Any]"))
      .def(
          "add_update",
          [](Graph& self, nb::object update) {
            self.add_update(std::make_shared<const std::function<void()>>(
                PythonUpdate{Kept(std::move(update))}));
          },
          "update"_any)
      .def_prop_rw("seed", &Graph::seed, &Graph::set_seed, nb::arg("seed").none());
  m.def(
      "adopt_default_graph",
      [](nb::handle type) {
        nb::object made = nb::inst_reference(type, &Graph::current());
        nb::inst_mark_ready(made);
        return made;
      },
      "type"_any, nb::sig("def adopt_default_graph(type: type[Graph]) -> Graph"),
      "The object that stands for the process-wide graph from now on.");
  m.def(
      "current_graph", [] { return &Graph::current(); }, nb::rv_policy::reference);
}

}  // namespace

void bind_graph(nb::module_& m) {
  bind_graph_class(m);
  nb::class_<OpenedGraph>(m, "OpenedGraph")
      .def(nb::init<>())
      .def(
          "open", [](OpenedGraph& self, Graph& graph) { self.open(graph); }, "graph"_a)
      .def("close", &OpenedGraph::close);
  nb::class_<OpenedScope>(m, "OpenedScope")
      .def(nb::init<>())
      .def(
          "open",
          [](OpenedScope& self, const std::string& name, bool reuse) { self.open(name, reuse); },
          "name"_a, "reuse"_a)
      .def(
          "open_again",
          [](OpenedScope& self, const std::string& full_name, bool reuse) {
            self.open(full_name, reuse, nullptr);
          },
          "full_name"_a, "reuse"_a)
      .def("close", &OpenedScope::close);
  m.def("current_scope",
        [] { return std::pair(VariableScope::current_name(), VariableScope::current_reuse()); });
  m.def(
      "op_seeds", [](std::optional<std::int64_t> seed) { return Graph::current().op_seeds(seed); },
      "seed"_a.none());
  m.def("get_variable", &get_variable_from_python, "name"_a, "shape"_any, "dtype"_any = "float32",
        "initializer"_any = nb::none(), "regularizer"_any = nb::none(), "trainable"_a = true,
        "constraint"_any = nb::none());
}

}  // namespace openrnn::python
