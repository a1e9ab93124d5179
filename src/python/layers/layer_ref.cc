#include "python/layers/layer_ref.h"

#include <algorithm>

#include "base/message.h"
#include "graph/tape/recording.h"
#include "openrnn/cells_layer_norm.h"
#include "openrnn/layers_graph.h"

namespace openrnn::python {
namespace {

// The package's classes by kind, for layers whose Python object is gone. Never destroyed.
nb::dict& classes() {
  static auto* const by_kind = new nb::dict;
  return *by_kind;
}

const char* kind_of(const Layer& layer) {
  if (dynamic_cast<const layers::LSTM*>(&layer)) return "LSTM";
  if (dynamic_cast<const layers::GRU*>(&layer)) return "GRU";
  if (dynamic_cast<const layers::RNN*>(&layer)) return "RNN";
  if (const auto* rnn = dynamic_cast<const layers::CudnnRnn*>(&layer)) {
    return to_string(rnn->network().mode).data();
  }
  if (dynamic_cast<const Model*>(&layer)) return "model";
  if (dynamic_cast<const layers::LayerGraph*>(&layer)) return "layer_graph";
  if (dynamic_cast<const layers::Dense*>(&layer)) return "dense";
  if (dynamic_cast<const layers::Embedding*>(&layer)) return "embedding";
  if (dynamic_cast<const layers::Dropout*>(&layer)) return "dropout";
  if (dynamic_cast<const CudnnCompatibleLSTMCell*>(&layer)) return "lstm_cell";
  if (dynamic_cast<const CudnnCompatibleGRUCell*>(&layer)) return "gru_cell";
  if (dynamic_cast<const BasicRNNCell*>(&layer)) return "basic_cell";
  if (dynamic_cast<const BasicLSTMCell*>(&layer)) return "basic_lstm_cell";
  if (dynamic_cast<const LSTMCell*>(&layer)) return "tf_lstm_cell";
  if (dynamic_cast<const GRUCell*>(&layer)) return "tf_gru_cell";
  if (dynamic_cast<const LayerNormBasicLSTMCell*>(&layer)) return "layer_norm_lstm_cell";
  if (dynamic_cast<const MultiRNNCell*>(&layer)) return "multi_cell";
  if (dynamic_cast<const DropoutWrapper*>(&layer)) return "dropout_cell";
  return "layer";
}

void make_in_place(nb::pointer_and_handle<LayerRef> self, const std::string& kind,
                   const nb::dict& options) {
  if (kind.size() > 4 && kind.ends_with("cell")) {
    new (self.p) LayerRef(make_cell(kind, options));
  } else {
    new (self.p) LayerRef(make_layer(kind, options));
  }
  remember({self.p->share().get(), 0}, self.h);
}

}  // namespace

LayerRef::LayerRef(std::shared_ptr<Layer> layer)
    : layer_(std::move(layer)),
      rnn_(dynamic_cast<layers::CudnnRnn*>(layer_.get())),
      cell_(std::dynamic_pointer_cast<RnnCell>(layer_)) {
  if (layer_) track_attributes(*layer_);
  // A model, a copy, or another Python object of a layer.
  built_before_ = layer_ && layer_->built();
  if (built_before_) keep(layer_->graph());
}

void LayerRef::keep(Graph& graph) {
  const nb::object object = nb::cast(&graph, nb::rv_policy::reference);
  const bool known = std::any_of(graphs_.begin(), graphs_.end(), [&](const Kept& kept) {
    return kept.get().ptr() == object.ptr();
  });
  if (!known) graphs_.emplace_back(object);
}

void LayerRef::keep_graph_until_built() {
  built_before_ = get().built();
  keep(built_before_ ? get().graph() : Graph::current());
}

void LayerRef::remember() { remembered_ = remember_attributes(get()); }

Layer& LayerRef::get() const {
  if (!layer_) {
    throw StateError("[Layer] __init__ of the base class has not run, expected it before any use");
  }
  return *layer_;
}

nb::object LayerRef::saveable() {
  const auto& found = rnn().saveable();
  if (!found) return nb::none();
  if (!saveable_) saveable_ = Kept(nb::cast(found));
  return nb::borrow(saveable_.get());
}

void LayerRef::forget_overrides() {
  calls_back_ = false;
  if (cell_) cell_->set_overrides({});
}

layers::CudnnRnn& LayerRef::rnn() const {
  if (!rnn_) throw NotConnectedError("[Layer] it is no recurrent layer, expected a CudnnLSTM");
  return *rnn_;
}

const std::shared_ptr<RnnCell>& LayerRef::cell() const {
  if (!cell_) throw TypeError("[Layer] it is no cell, expected an RNN cell");
  return cell_;
}

nb::object wrap_as(nb::handle type, LayerRef ref) {
  nb::object made = nb::inst_alloc(type);
  auto* const place = nb::inst_ptr<LayerRef>(made);
  new (place) LayerRef(std::move(ref));
  nb::inst_mark_ready(made);
  remember({place->share().get(), 0}, made);
  return made;
}

nb::object wrap_layer(const std::shared_ptr<Layer>& layer) {
  if (const nb::handle alive = find_alive({layer.get(), 0})) return nb::steal(alive);
  if (nb::object made = remembered_object(layer); made.is_valid()) return made;
  const char* kind = kind_of(*layer);
  const nb::object type =
      classes().contains(kind) ? nb::object(classes()[kind]) : nb::borrow(nb::type<LayerRef>());
  return wrap_as(type, LayerRef(layer));
}

bool tape_is_open() { return graph::OpenTapes::of_this_thread()->any(); }

std::vector<Tensor> as_inputs(nb::handle inputs, const AsTensor& how) {
  if (inputs.is_none()) return {};
  if (nb::isinstance<nb::list>(inputs) || nb::isinstance<nb::tuple>(inputs)) {
    std::vector<Tensor> tensors;
    for (const nb::handle input : inputs) {
      for (Tensor& tensor : as_inputs(input, how)) tensors.push_back(std::move(tensor));
    }
    return tensors;
  }
  return {as_tensor(inputs, how)};
}

namespace {

void bind_names(nb::class_<LayerRef>& layer) {
  layer
      .def("__init__", &make_in_place, "kind"_a, "options"_a,
           nb::sig("def __init__(self, kind: str, options: dict[str, typing.Any]) -> None"))
      .def_prop_ro(
          "name", [](const LayerRef& self) { return self.get().name(); },
          "As given, else the class name in snake case, made unique at first use.")
      .def_prop_ro(
          "dtype", [](const LayerRef& self) { return dtype_name(self.get().dtype()); },
          "'float32' and the like.")
      .def_prop_ro(
          "device", [](const LayerRef& self) { return device_str(self.get().device()); },
          nb::sig("def device(self) -> str"),
          "Where its variables lie and it runs: 'cpu', 'gpu:0'.")
      .def_prop_rw(
          "built", [](const LayerRef& self) { return self.get().built(); },
          [](const LayerRef& self, bool built) {
            // What build() of Keras sets at its end.
            if (built == self.get().built() || (built && self.get().building())) return;
            throw ArgumentError(message("[built] it is set to ", built ? "True" : "False",
                                        ", expected build() or a call to change it"));
          },
          "True once the variables are made. In build() it may be set, as Keras asks for.")
      .def_prop_rw(
          "trainable", [](const LayerRef& self) { return self.get().trainable(); },
          [](LayerRef& self, bool trainable) { self.get().set_trainable(trainable); })
      .def_prop_rw(
          "stateful", [](const LayerRef& self) { return self.get().stateful; },
          [](LayerRef& self, bool stateful) { self.get().stateful = stateful; })
      .def_prop_ro(
          "scope_name", [](const LayerRef& self) { return self.get().scope_name(); },
          "The full scope name. Raises ValueError before the first use.")
      .def_prop_ro(
          "graph", [](const LayerRef& self) { return &self.get().graph(); },
          nb::rv_policy::reference, "The Graph that it was built in.");
}

void bind_building(nb::module_& m) {
  m.def(
      "layer_build",
      [](LayerRef& self, nb::handle input_shape) {
        const auto lock = self.exclusive();
        self.keep_graph();
        self.get().build(as_shape("build", input_shape));
      },
      "layer"_a, "input_shape"_any);
  m.def(
      "layer_building", [](const LayerRef& self) { return self.get().building(); }, "layer"_a);
  m.def(
      "layer_override_build",
      [](LayerRef& self) {
        Layer& layer = self.get();
        layer.override_build([&layer](const Shape& input_shape) {
          const nb::gil_scoped_acquire lock;
          wrap_layer(layer.weak_from_this().lock()).attr("build")(shape_tuple(input_shape));
        });
      },
      "layer"_a, "From now on the object's build() is called, inside the layer's scope.");
  m.def(
      "layer_input_spec",
      [](const LayerRef& self)
          -> std::optional<std::pair<std::optional<std::size_t>,
                                     std::vector<std::pair<std::int64_t, std::int64_t>>>> {
        const auto& spec = self.get().input_spec();
        if (!spec) return std::nullopt;
        return std::pair(spec->ndim, std::vector<std::pair<std::int64_t, std::int64_t>>(
                                         spec->axes.begin(), spec->axes.end()));
      },
      "layer"_a);
  m.def(
      "layer_graph",
      [](const LayerRef& self) -> nb::object {
        if (self.get().state().scope.empty()) return nb::none();
        return nb::cast(&self.get().graph(), nb::rv_policy::reference);
      },
      "layer"_a, "Its graph; None before it has a scope.");
  m.def(
      "layer_copy",
      [](nb::handle self) {
        return wrap_as(self.type(), LayerRef(nb::cast<LayerRef&>(self).get().copy()));
      },
      "layer"_a, nb::sig("def layer_copy(layer: LayerBase) -> typing.Any"),
      "A copy that shares the variables, the graph and the tensors.");
}

// A layer that calls its object back is a reference cycle, which Python must see.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  if (nb::inst_ptr<LayerRef>(self)->is_alone_with_its_layer()) Py_VISIT(self);
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<LayerRef>(self)->forget_overrides();
  return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

void bind_layer(nb::module_& m) {
  nb::class_<LayerRef> layer(m, "LayerBase", nb::type_slots(slots), nb::is_weak_referenceable(),
                             "What every layer, cell and model derives from.");
  bind_names(layer);
  bind_layer_weights(layer, m);
  bind_layer_losses(layer, m);
  bind_layer_nodes(layer, m);
  bind_building(m);
  bind_python_layer(m);
  bind_cudnn_rnn(m);
  bind_simple_layers(m);
  bind_model(m);
  bind_layer_graph(m);
  bind_attributes(m);
  m.def(
      "make_input",
      [](nb::handle shape, nb::handle dtype, const std::string& name) {
        return Input(as_shape("Input", shape), as_dtype(dtype), name);
      },
      "shape"_any, "dtype"_any, "name"_a);
  m.def(
      "set_layer_classes", [](const nb::dict& given) { classes().update(given); }, "classes"_a,
      nb::sig("def set_layer_classes(classes: dict[str, type[LayerBase]]) -> None"));
}

}  // namespace openrnn::python
