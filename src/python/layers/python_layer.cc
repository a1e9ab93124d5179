// Layers that users write in Python: a subclass of openrnn.layers.Layer, or of a class below it,
// with `build` and `call` of its own.
#include "base/message.h"
#include "python/layers/node_ref.h"

namespace openrnn::python {
namespace {

class PythonLayer : public Layer {
 public:
  using Layer::Layer;
  using Layer::set_reuse;
  bool builds_again() const override { return false; }
  std::shared_ptr<Layer> copy() const override {
    auto made = std::make_shared<PythonLayer>("", "layer", dtype());
    made->copy_layer(*this);
    return made;
  }

 protected:
  void do_build(const Shape&) override {}
};

}  // namespace

std::vector<Tensor> PythonCall::operator()(const std::vector<Tensor>& tensors,
                                           const Replay& replay) const {
  const nb::gil_scoped_acquire lock;
  return as_inputs(function.get()(nb::cast(tensors), nb::cast(replay.training)), {.call = "call"});
}

std::shared_ptr<Layer> make_python_layer(const nb::dict& options) {
  auto layer = std::make_shared<PythonLayer>(
      nb::cast<std::string>(options["name"]), nb::cast<std::string>(options["default_name"]),
      as_dtype(options["dtype"]), as_device(options["device"]));
  layer->set_reuse(nb::cast<bool>(options["reuse"]));
  layer->set_trainable(as_value<bool>("trainable", nb::object(options["trainable"])));
  return layer;
}

void bind_python_layer(nb::module_& m) {
  m.def(
      "is_symbolic", [](nb::handle value) { return is_symbolic(value); }, "value"_any,
      "Whether it is a symbolic tensor, or a tuple that holds one.");
  m.def(
      "layer_call",
      [](LayerRef& self, nb::handle inputs, const std::string& scope, nb::object function) {
        self.keep_graph();
        const auto lock = self.exclusive();
        return self.get().call_as(as_inputs(inputs, {.call = "call", .dtype = self.get().dtype()}),
                                  PythonCall{Kept(std::move(function))}, scope);
      },
      "layer"_a, "inputs"_any, "scope"_a, "function"_any);
}

}  // namespace openrnn::python
