// The calls of a layer on symbolic tensors.
#include "python/layers/node_ref.h"

namespace openrnn::python {
namespace {

// One by itself, several as a list: as TensorFlow shows them.
nb::object one_or_list(const std::vector<Tensor>& tensors) {
  return tensors.size() == 1 ? nb::cast(tensors[0]) : nb::cast(tensors);
}

nb::object one_or_list(const std::vector<Shape>& shapes) {
  if (shapes.size() == 1) return shape_tuple(shapes[0]);
  nb::list result;
  for (const Shape& shape : shapes) result.append(shape_tuple(shape));
  return result;
}

nb::object mask(const Tensor& tensor) { return tensor.empty() ? nb::none() : nb::cast(tensor); }

nb::list node_list(const Layer::NodeList& nodes) {
  nb::list result;
  for (const auto& node : nodes) result.append(wrap_node(node));
  return result;
}

nb::list shapes_list(const std::vector<Tensor>& tensors) {
  nb::list result;
  for (const Tensor& tensor : tensors) result.append(shape_tuple(tensor.shape()));
  return result;
}

nb::object layer_of(const SymbolicCall& call) {
  if (!call.layer || !call.layer->layer) return nb::none();
  const std::shared_ptr<Layer> layer = call.layer->layer->weak_from_this().lock();
  return layer ? wrap_layer(layer) : nb::none();
}

void bind_node(nb::module_& m) {
  nb::class_<NodeRef> node(m, "Node", "One call on symbolic tensors: of a layer, or an operation.");
  bind_recorded(node, m);
  node.def_prop_ro("input_tensors", [](const NodeRef& self) { return self.call->inputs; })
      .def_prop_ro("output_tensors", &NodeRef::outputs)
      .def_prop_ro(
          "input_shapes", [](const NodeRef& self) { return shapes_list(self.call->inputs); },
          nb::sig("def input_shapes(self) -> list[tuple[int | None, ...]]"))
      .def_prop_ro(
          "output_shapes", [](const NodeRef& self) { return shapes_list(self.outputs()); },
          nb::sig("def output_shapes(self) -> list[tuple[int | None, ...]]"))
      .def_prop_ro(
          "outbound_layer", [](const NodeRef& self) { return layer_of(*self.call); },
          nb::sig("def outbound_layer(self) -> typing.Any"), "The layer that was called.")
      .def_prop_ro(
          "inbound_layers",
          [](const NodeRef& self) {
            nb::list result;
            for (const Tensor& input : self.call->inputs) {
              if (!input.is_symbolic()) continue;
              const nb::object layer = layer_of(*input.symbol()->call);
              if (!layer.is_none()) result.append(layer);
            }
            return result;
          },
          nb::sig("def inbound_layers(self) -> list[typing.Any]"),
          "The layers that its inputs came out of.")
      .def(
          "__eq__",
          [](const NodeRef& self, nb::handle other) {
            const NodeRef* same = nullptr;
            return nb::try_cast<const NodeRef*>(other, same) && same && same->call == self.call;
          },
          "other"_any, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const NodeRef& self) { return std::hash<const void*>()(self.call.get()); });
}

void bind_node_members(nb::class_<LayerRef>& layer) {
  layer
      .def_prop_ro(
          "inbound_nodes",
          [](const LayerRef& self) { return node_list(self.get().inbound_nodes()); },
          nb::sig("def inbound_nodes(self) -> list[Node]"))
      .def_prop_ro(
          "outbound_nodes",
          [](const LayerRef& self) { return node_list(self.get().outbound_nodes()); },
          nb::sig("def outbound_nodes(self) -> list[Node]"))
      .def_prop_ro(
          "input", [](const LayerRef& self) { return one_or_list(self.get().input()); },
          nb::sig("def input(self) -> typing.Any"),
          "Inputs of node 0. Raises AttributeError without a node.")
      .def_prop_ro(
          "output", [](const LayerRef& self) { return one_or_list(self.get().output()); },
          nb::sig("def output(self) -> typing.Any"),
          "Outputs of node 0, a list when they are several.")
      .def_prop_ro(
          "input_shape", [](const LayerRef& self) { return one_or_list(self.get().input_shape()); },
          nb::sig("def input_shape(self) -> typing.Any"))
      .def_prop_ro(
          "output_shape",
          [](const LayerRef& self) { return one_or_list(self.get().output_shape()); },
          nb::sig("def output_shape(self) -> typing.Any"))
      .def_prop_ro(
          "input_mask", [](const LayerRef& self) { return mask(self.get().input_mask()); },
          nb::sig("def input_mask(self) -> typing.Any"))
      .def_prop_ro(
          "output_mask", [](const LayerRef& self) { return mask(self.get().output_mask()); },
          nb::sig("def output_mask(self) -> typing.Any"));
}

}  // namespace

std::vector<Tensor> NodeRef::outputs() const {
  std::shared_ptr<const void> kept = owner;
  if (!kept && call->layer && call->layer->layer) {
    kept = call->layer->layer->weak_from_this().lock();
  }
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < call->outputs.size(); ++i) {
    tensors.emplace_back(std::make_shared<const Symbol>(Symbol{call, i, kept}));
  }
  return tensors;
}

nb::object wrap_node(const std::shared_ptr<const SymbolicCall>& call,
                     const std::shared_ptr<const void>& owner) {
  const Identity identity{call.get(), ~std::uint64_t{0}};
  if (const nb::handle alive = find_alive(identity)) return nb::steal(alive);
  nb::object made = nb::cast(NodeRef{call, owner});
  remember(identity, made);
  return made;
}

void bind_layer_nodes(nb::class_<LayerRef>& layer, nb::module_& m) {
  bind_node(m);
  bind_node_members(layer);
  m.def(
      "layer_get_input_at",
      [](const LayerRef& self, std::int64_t i) { return one_or_list(self.get().get_input_at(i)); },
      "layer"_a, "node_index"_a,
      nb::sig("def layer_get_input_at(layer: LayerBase, node_index: int) -> typing.Any"));
  m.def(
      "layer_get_output_at",
      [](const LayerRef& self, std::int64_t i) { return one_or_list(self.get().get_output_at(i)); },
      "layer"_a, "node_index"_a,
      nb::sig("def layer_get_output_at(layer: LayerBase, node_index: int) -> typing.Any"));
  m.def(
      "layer_get_input_shape_at",
      [](const LayerRef& self, std::int64_t i) {
        return one_or_list(self.get().get_input_shape_at(i));
      },
      "layer"_a, "node_index"_a,
      nb::sig("def layer_get_input_shape_at(layer: LayerBase, node_index: int) -> typing.Any"));
  m.def(
      "layer_get_output_shape_at",
      [](const LayerRef& self, std::int64_t i) {
        return one_or_list(self.get().get_output_shape_at(i));
      },
      "layer"_a, "node_index"_a,
      nb::sig("def layer_get_output_shape_at(layer: LayerBase, node_index: int) -> typing.Any"));
  m.def(
      "layer_get_input_mask_at",
      [](const LayerRef& self, std::int64_t i) { return mask(self.get().get_input_mask_at(i)); },
      "layer"_a, "node_index"_a,
      nb::sig("def layer_get_input_mask_at(layer: LayerBase, node_index: int) -> typing.Any"));
  m.def(
      "layer_get_output_mask_at",
      [](const LayerRef& self, std::int64_t i) { return mask(self.get().get_output_mask_at(i)); },
      "layer"_a, "node_index"_a,
      nb::sig("def layer_get_output_mask_at(layer: LayerBase, node_index: int) -> typing.Any"));
  m.def(
      "layer_compute_output_shape",
      [](const LayerRef& self, nb::handle input_shape) {
        return shape_tuple(
            self.get().compute_output_shape(as_shape("compute_output_shape", input_shape)));
      },
      "layer"_a, "input_shape"_any,
      nb::sig("def layer_compute_output_shape(layer: LayerBase, input_shape: object) -> "
              "tuple[int | None, ...]"));
}

}  // namespace openrnn::python
