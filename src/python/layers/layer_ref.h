// The Python object of a layer: a share of the layer, whatever class it is.
#pragma once

#include "openrnn/cells.h"
#include "openrnn/graph_layer.h"
#include "openrnn/layers.h"
#include "python/support/convert.h"

namespace openrnn::python {

/// What every layer, cell and model in Python derives from.
class LayerRef {
 public:
  LayerRef() = default;
  explicit LayerRef(std::shared_ptr<Layer> layer);

  /// Throws: StateError before the base class's __init__ has run.
  Layer& get() const;
  const std::shared_ptr<Layer>& share() const noexcept { return layer_; }
  /// Throws: NotConnectedError (an AttributeError) for a layer of another class.
  layers::CudnnRnn& rnn() const;
  const std::shared_ptr<RnnCell>& cell() const;
  /// Another layer under the same Python object.
  void replace(std::shared_ptr<Layer> layer) { *this = LayerRef(std::move(layer)); }
  template <class T>
  T& as(const char* what) const {
    if (auto* const typed = dynamic_cast<T*>(layer_.get())) return *typed;
    throw TypeError(std::string("[") + what + "] the layer is of another class");
  }

  /// Calls of one layer must not overlap.
  std::unique_lock<std::recursive_mutex> exclusive() const { return calls_.take(); }
  /// The layer calls the object back from now on, and keeps it alive; both are freed when nothing
  /// else owns the layer.
  void set_calls_back(bool calls_back) noexcept { calls_back_ = calls_back; }
  bool is_alone_with_its_layer() const noexcept {
    return calls_back_ && layer_.use_count() == (cell_ ? 2 : 1);
  }
  /// Ends that.
  void forget_overrides();
  /// The one Python object of a recurrent layer's saveable, None without one.
  nb::object saveable();
  /// Keeps the current graph alive, as a layer that is not built may point to it later.
  void keep_graph() {
    if (!built_before_) keep_graph_until_built();
    if (!remembered_) remember();
  }

 private:
  void keep(Graph& graph);
  void keep_graph_until_built();
  void remember();

  std::shared_ptr<Layer> layer_;
  layers::CudnnRnn* rnn_ = nullptr;
  std::shared_ptr<RnnCell> cell_;
  CallLock calls_;
  Kept saveable_;
  /// More than one when building failed in another graph before.
  std::vector<Kept> graphs_;
  bool calls_back_ = false;
  bool remembered_ = false;
  bool built_before_ = false;  // then the layer's graph is among `graphs_`
};

/// An update from Python, which is returned unchanged.
struct PythonUpdate {
  Kept function;
  void operator()() const;
};
/// Updates as Python objects.
nb::object python_of(const std::function<void()>& update);

/// The Python object of that layer: the one that is alive, else a new one of its Python class.
nb::object wrap_layer(const std::shared_ptr<Layer>& layer);
/// A new object of `type` for a layer that has none.
nb::object wrap_as(nb::handle type, LayerRef ref);

/// Whether a tape records on this thread: then nothing may be borrowed.
bool tape_is_open();

/// Tensors of a call: one, or a list or tuple.
std::vector<Tensor> as_inputs(nb::handle inputs, const AsTensor& how);

std::shared_ptr<Layer> make_python_layer(const nb::dict& options);
std::shared_ptr<Layer> make_layer(const std::string& kind, const nb::dict& options);
std::shared_ptr<Layer> make_layer_graph(const nb::dict& options);
std::shared_ptr<RnnCell> make_cell(const std::string& kind, const nb::dict& options);

// What every layer has, as members; the rest as functions of the module, so that a layer of a
// user's own may have attributes of any other name.
void bind_layer_weights(nb::class_<LayerRef>& layer, nb::module_& m);
void bind_layer_losses(nb::class_<LayerRef>& layer, nb::module_& m);
void bind_layer_nodes(nb::class_<LayerRef>& layer, nb::module_& m);
void bind_cudnn_rnn(nb::module_& m);
void bind_python_layer(nb::module_& m);
void bind_simple_layers(nb::module_& m);
void bind_model(nb::module_& m);
void bind_layer_graph(nb::module_& m);
void bind_attributes(nb::module_& m);
/// Makes the attributes of the layer's Python object, whichever that is at the time, its parts.
void track_attributes(Layer& layer);
/// What the Python object of a layer is made again from once it is gone and the layer is not: its
/// class, and those of its attributes that hold no layer and no symbolic tensor, which could hold
/// this one. An object whose call() is the user's own is kept by what that recorded. False where
/// the object is not whole yet.
bool remember_attributes(const Layer& layer);
/// An object made of that; null where nothing was remembered.
nb::object remembered_object(const std::shared_ptr<Layer>& layer);

}  // namespace openrnn::python
