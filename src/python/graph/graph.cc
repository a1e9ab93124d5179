// Graphs, variable scopes and get_variable.
#include <thread>

#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/scope_stack.h"
#include "python/layers/layer_ref.h"

namespace openrnn::python {
namespace {

/// What a `with` statement holds open on its thread. Guards are closed by the thread that opened
/// them, innermost first; others are left open.
template <class Guard>
class Opened {
 public:
  Opened() = default;
  ~Opened() {
    while (!guards_.empty()) {
      if (innermost()) {
        order().pop_back();
      } else {
        (void)guards_.back().guard.release();
      }
      guards_.pop_back();
    }
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  template <class... Args>
  void open(Args&&... args) {
    auto guard = std::make_unique<Guard>(std::forward<Args>(args)...);
    order().push_back(guard.get());
    guards_.push_back({std::move(guard), std::this_thread::get_id()});
  }
  void close() {
    if (guards_.empty()) return;
    if (!innermost()) {
      throw StateError(message("[", Guard::kCall, "] it is closed ",
                               here() ? "while one that was opened later is open"
                                      : "on another thread than the one that opened it",
                               ", expected with statements of one thread that nest"));
    }
    order().pop_back();
    guards_.pop_back();
  }

 private:
  struct Open {
    std::unique_ptr<Guard> guard;
    std::thread::id thread;
  };
  static std::vector<const Guard*>& order() {
    thread_local std::vector<const Guard*> open;
    return open;
  }
  bool here() const { return guards_.back().thread == std::this_thread::get_id(); }
  bool innermost() const {
    return here() && !order().empty() && order().back() == guards_.back().guard.get();
  }
  std::vector<Open> guards_;
};
/// A new scope inside the current one, or one of that full name again.
struct Scope {
  static constexpr const char* kCall = "variable_scope";
  Scope(const std::string& name, bool reuse) : inner(std::in_place, name, reuse) {}
  Scope(const std::string& full_name, bool reuse, std::nullptr_t)
      : again(std::in_place, full_name, reuse, around()) {}
  // Inside a layer's call its weights stay those that get_variable knows.
  static std::vector<Variable>* around() {
    const graph::OpenScope* const scope = graph::innermost_scope();
    return scope ? scope->weights : nullptr;
  }
  // Closing a scope writes to its graph.
  Kept graph{nb::cast(&Graph::current(), nb::rv_policy::reference)};
  std::optional<VariableScope> inner;
  std::optional<graph::ReopenedScope> again;
};
using OpenedScope = Opened<Scope>;
/// Keeps its graph, and those around it, for as long as it is open.
struct DefaultGraph {
  static constexpr const char* kCall = "as_default";
  explicit DefaultGraph(Graph& graph)
      : kept(nb::cast(&graph, nb::rv_policy::reference)), guard(graph) {}
  Kept kept;
  Graph::AsDefault guard;
};
using OpenedGraph = Opened<DefaultGraph>;

/// Unless kept, undo() removes what was added to the current graph since.
struct GraphUndo {
  Kept graph{nb::cast(&Graph::current(), nb::rv_policy::reference)};
  std::optional<graph::Rollback> rollback{std::in_place, Graph::current()};
  void keep() {
    if (rollback) rollback->keep();
  }
  void undo() { rollback.reset(); }
};

Variable get_variable_from_python(const std::string& name, nb::handle shape, nb::handle dtype,
                                  nb::handle initializer, nb::handle regularizer, bool trainable,
                                  nb::handle constraint, nb::handle device) {
  VariableOptions options;
  options.dtype = as_dtype(dtype);
  options.initializer = as_initializer(initializer);
  options.trainable = trainable;
  options.regularizer = as_tensor_function(regularizer, "get_variable");
  options.constraint = as_tensor_function(constraint, "get_variable");
  options.device = as_device(device);
  return get_variable(name, as_shape("get_variable", shape), options);
}

// The garbage collector must visit values of collections: a layer there may hold the graph.
int traverse_collections(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const auto& [key, values] : nb::inst_ptr<Graph>(self)->state().collections) {
    for (const std::any& value : values) {
      const auto* const kept = std::any_cast<Kept>(&value);
      if (kept) Py_VISIT(kept->get().ptr());
    }
  }
  return 0;
}

int clear_collections(PyObject* self) {
  // Destructors of the values may use the graph.
  auto gone = std::move(nb::inst_ptr<Graph>(self)->state().collections);
  nb::inst_ptr<Graph>(self)->state().collections.clear();
  return 0;
}

PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_collections)},
                           {Py_tp_clear, reinterpret_cast<void*>(clear_collections)},
                           {0, nullptr}};

void bind_collections(nb::class_<Graph>& graph) {
  graph
      .def(
          "add_to_collection_core",
          [](Graph& self, const std::string& key, nb::object value) {
            self.add_to_collection(key, Kept(std::move(value)));
          },
          "key"_a, "value"_any,
          nb::sig("def add_to_collection_core(self, key: str, value: typing.Any) -> None"))
      .def(
          "get_collection_core",
          [](const Graph& self, const std::string& key) {
            nb::list values;
            for (const Kept& kept : self.get_collection<Kept>(key)) values.append(kept.get());
            return values;
          },
          "key"_a, nb::sig("def get_collection_core(self, key: str) -> list[typing.Any]"));
}

void bind_graph_class(nb::module_& m) {
  nb::class_<Graph> graph(m, "Graph", nb::is_weak_referenceable(), nb::type_slots(collected),
                          "The registry that variables, scopes and collections live in.");
  bind_collections(graph);
  graph.def(nb::init<>())
      .def("variables", &Graph::variables, "In order of creation.")
      .def("trainable_variables", &Graph::trainable_variables)
      .def("regularization_losses", &Graph::regularization_losses)
      .def("saveables", &Graph::saveables)
      .def(
          "add_saveable",
          [](Graph& self, std::shared_ptr<SaveableObject> saveable) {
            self.add_saveable(std::move(saveable));
          },
          "saveable"_a)
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
  nb::class_<GraphUndo>(m, "GraphUndo")
      .def(nb::init<>())
      .def("keep", &GraphUndo::keep)
      .def("undo", &GraphUndo::undo);
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
  m.def("get_variable", &get_variable_from_python, "name"_a, "shape"_any, "dtype"_any = "float32",
        "initializer"_any = nb::none(), "regularizer"_any = nb::none(), "trainable"_a = true,
        "constraint"_any = nb::none(), "device"_any = nb::none());
}

}  // namespace openrnn::python
