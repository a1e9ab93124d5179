#include "python/support/mapped_layers.h"

#include "base/excerpt.h"
#include "base/message.h"

namespace openrnn::python {
namespace {

nb::object to_python(const PlainValue& value) {
  return std::visit(
      []<class T>(const T& held) -> nb::object {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nb::none();
        } else {
          return nb::cast(held);
        }
      },
      value);
}

// Of the type of the option's default.
PlainValue option_from(const std::string& name, nb::handle value, const PlainValue& like) {
  return std::visit(
      [&]<class T>(const T&) -> PlainValue {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else {
          T held{};
          const bool right =
              std::is_same_v<T, bool> ? PyBool_Check(value.ptr()) : !PyBool_Check(value.ptr());
          if (right && nb::try_cast<T>(value, held)) return held;
          throw TypeError(message("[layers] the option '", excerpt(name), "' is ",
                                  quoted_type(value), ", expected the type of its default"));
        }
      },
      like);
}

Array array_of(nb::handle value) {
  return std::move(as_arrays(nb::make_tuple(value), {.call = "layers"}).at(0));
}

MappedLayer layer_from_python(const nb::dict& given) {
  MappedLayer layer{.name = nb::cast<std::string>(given["name"]),
                    .kind = nb::cast<std::string>(given["kind"]),
                    .inputs = outputs_from_python(given["inputs"])};
  for (const auto [key, value] : nb::cast<nb::dict>(given["options"])) {
    const auto name = nb::cast<std::string>(key);
    const PlainValue like = layer_option({.name = layer.name, .kind = layer.kind}, name);
    layer.options[name] = option_from(name, value, like);
  }
  if (!given.contains("weights")) return layer;
  for (const auto [name, values] : nb::cast<nb::dict>(given["weights"])) {
    layer.weights.push_back({nb::cast<std::string>(name), array_of(values)});
  }
  if (!given.contains("slots")) return layer;
  const auto slots = nb::cast<nb::dict>(given["slots"]);
  for (LayerWeight& weight : layer.weights) {
    const nb::str name(weight.name.c_str());
    if (!slots.contains(name)) continue;
    for (const auto [slot, values] : nb::cast<nb::dict>(slots[name])) {
      weight.slots.emplace(nb::cast<std::string>(slot), array_of(values));
    }
  }
  return layer;
}

}  // namespace

nb::list outputs_to_python(const std::vector<LayerOutput>& outputs) {
  nb::list places;
  for (const LayerOutput& one : outputs) places.append(nb::make_tuple(one.layer, one.index));
  return places;
}

std::vector<LayerOutput> outputs_from_python(nb::handle outputs) {
  std::vector<LayerOutput> places;
  for (const nb::handle one : nb::borrow<nb::sequence>(outputs)) {
    const auto place = nb::borrow<nb::sequence>(one);
    places.push_back({nb::cast<std::string>(place[0]), nb::cast<std::int64_t>(place[1])});
  }
  return places;
}

nb::list layers_to_python(const std::vector<MappedLayer>& layers) {
  nb::list result;
  for (const MappedLayer& layer : layers) {
    nb::dict options, weights, slots;
    for (const auto& [name, value] : layer.options) {
      options[nb::str(name.c_str())] = to_python(value);
    }
    for (const LayerWeight& weight : layer.weights) {
      const nb::str name(weight.name.c_str());
      weights[name] = as_numpy(weight.values);
      if (weight.slots.empty()) continue;
      nb::dict of_weight;
      for (const auto& [slot, values] : weight.slots) {
        of_weight[nb::str(slot.c_str())] = as_numpy(values);
      }
      slots[name] = of_weight;
    }
    nb::dict one;
    one["name"] = layer.name;
    one["kind"] = layer.kind;
    one["inputs"] = outputs_to_python(layer.inputs);
    one["options"] = options;
    one["weights"] = weights;
    one["slots"] = slots;
    one["tensors"] = layer.tensors;
    result.append(one);
  }
  return result;
}

std::vector<MappedLayer> layers_from_python(nb::handle layers) {
  std::vector<MappedLayer> made;
  for (const nb::handle one : nb::borrow<nb::sequence>(layers)) {
    made.push_back(layer_from_python(nb::cast<nb::dict>(one)));
  }
  return made;
}

}  // namespace openrnn::python
