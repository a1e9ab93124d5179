// Layers that users write in Python: a subclass of openrnn.layers.Layer with `build` and `call`.
#include "base/message.h"
#include "python/layers/layer_ref.h"

namespace openrnn::python {
namespace {

class PythonLayer : public Layer {
 public:
  using Layer::Layer;
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const std::string& scope,
                          const Function& call) {
    ensure_built(inputs.empty() ? Shape{} : inputs[0].shape(), scope);
    begin_call(inputs);
    std::vector<Tensor> outputs = [&] {
      const bool values = !any_symbolic(inputs);
      std::optional<DuringCall> during;
      if (values) during.emplace(*this);
      return call(inputs);
    }();
    if (any_symbolic(inputs)) {
      // The call itself is the node: what it recorded inside is only asked for shapes.
      std::vector<TensorSpec> specs;
      for (const Tensor& output : outputs) specs.push_back({output.dtype(), output.shape()});
      outputs = record_node(
          inputs, std::move(specs),
          [call](const std::vector<Tensor>& values, const Replay&) { return call(values); });
    }
    end_call(inputs, outputs);
    return outputs;
  }
  bool building() const noexcept { return building_; }
  std::shared_ptr<Layer> copy() const override {
    auto made = std::make_shared<PythonLayer>("", "layer", dtype());
    made->copy_layer(*this);
    return made;
  }

 protected:
  void do_build(const Shape& input_shape) override {
    const nb::gil_scoped_acquire lock;
    const nb::object self = wrap_layer(shared_from_this());
    building_ = true;
    try {
      self.attr("_build_weights")(shape_tuple(input_shape));
    } catch (...) {
      building_ = false;
      throw;
    }
    building_ = false;
  }

 private:
  bool building_ = false;
};

std::vector<Tensor> call_python(const Kept& function, const std::vector<Tensor>& tensors) {
  const nb::gil_scoped_acquire lock;
  return as_inputs(function.get()(nb::cast(tensors)), {.call = "call"});
}

}  // namespace

std::shared_ptr<Layer> make_python_layer(const nb::dict& options) {
  auto layer = std::make_shared<PythonLayer>(
      nb::cast<std::string>(options["name"]), nb::cast<std::string>(options["default_name"]),
      as_dtype(options["dtype"]), as_device(options["device"]));
  layer->trainable = nb::cast<bool>(options["trainable"]);
  return layer;
}

bool is_building(const Layer& layer) {
  const auto* const python = dynamic_cast<const PythonLayer*>(&layer);
  return python && python->building();
}

void bind_python_layer(nb::class_<LayerRef>& layer) {
  layer.def(
      "python_call",
      [](LayerRef& self, nb::handle inputs, const std::string& scope, nb::object function) {
        self.keep_graph();
        const auto lock = self.exclusive();
        return self.as<PythonLayer>("call").run(
            as_inputs(inputs, {.call = "call", .dtype = self.get().dtype()}), scope,
            [kept = Kept(std::move(function))](const std::vector<Tensor>& tensors) {
              return call_python(kept, tensors);
            });
      },
      "inputs"_any, "scope"_a, "function"_any);
}

}  // namespace openrnn::python
