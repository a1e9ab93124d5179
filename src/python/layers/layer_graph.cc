// The whole model of a file as a layer.
#include "openrnn/layers_graph.h"
#include "python/layers/layer_ref.h"
#include "python/support/mapped_layers.h"

namespace openrnn::python {
namespace {

// [(dtype, shape)]; None where a size is not known.
nb::list values_to_python(const std::vector<LayerValue>& values) {
  nb::list result;
  for (const LayerValue& value : values) {
    result.append(nb::make_tuple(dtype_str(value.dtype), shape_tuple(value.shape)));
  }
  return result;
}

}  // namespace

std::shared_ptr<Layer> make_layer_graph(const nb::dict& options) {
  layers::LayerGraph::Made made;
  for (const auto [name, layer] : nb::cast<nb::dict>(options["made"])) {
    made[nb::cast<std::string>(name)] = nb::cast<LayerRef&>(layer).share();
  }
  const nb::object name = options["name"];
  return std::make_shared<layers::LayerGraph>(
      layers_from_python(options["description"]), outputs_from_python(options["outputs"]),
      std::move(made), name.is_none() ? std::string() : nb::cast<std::string>(name));
}

void bind_layer_graph(nb::module_& m) {
  m.def(
      "graph_call",
      [](LayerRef& self, nb::handle given_values, bool training) {
        auto& graph = self.as<layers::LayerGraph>("LayerGraph");
        const nb::list given = nb::borrow<nb::list>(given_values);
        std::vector<Tensor> values;
        for (std::size_t i = 0; i < given.size(); ++i) {
          AsTensor how{.call = graph.name().c_str()};
          if (i < graph.inputs().size()) how.dtype = graph.inputs()[i].dtype;
          values.push_back(as_tensor(given[i], how));
        }
        self.keep_graph();
        const auto lock = self.exclusive();
        if (any_symbolic(values)) return graph(values, training);
        return unlocked([&] { return graph(values, training); });
      },
      "layer"_a, "values"_any, "training"_a);
  m.def(
      "graph_inputs",
      [](const LayerRef& self) {
        return values_to_python(self.as<layers::LayerGraph>("LayerGraph").inputs());
      },
      "layer"_a,
      nb::sig("def graph_inputs(layer: LayerBase) -> "
              "list[tuple[str, tuple[int | None, ...]]]"));
  m.def(
      "graph_outputs",
      [](const LayerRef& self) {
        return values_to_python(self.as<layers::LayerGraph>("LayerGraph").outputs());
      },
      "layer"_a,
      nb::sig("def graph_outputs(layer: LayerBase) -> "
              "list[tuple[str, tuple[int | None, ...]]]"));
  m.def(
      "graph_reset",
      [](LayerRef& self) {
        const auto lock = self.exclusive();
        self.as<layers::LayerGraph>("LayerGraph").reset_states();
      },
      "layer"_a);
}

}  // namespace openrnn::python
