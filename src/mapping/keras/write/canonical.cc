#include "base/message.h"
#include "mapping/support/keras_arrays.h"
#include "mapping/support/options.h"
#include "openrnn/mapping_keras.h"

namespace openrnn {

namespace {

using mapping::KerasPlace;

// Throws unless Keras's layers hold the network as it is.
void require_keras(std::string_view call, const RnnSpec& given) {
  constexpr std::string_view kHeld[] = {"reset_after", "use_bias",          "single_bias",
                                        "activation",  "output_activation", "recurrent_activation"};
  const RnnSpec spec = mapping::plainest(given);
  mapping::require_held(call, {}, spec, "Keras", kHeld);
  const bool two = spec.mode == RnnMode::kGru && spec.reset_after;
  const int expected = two ? 2 : 1;
  if (!spec.use_bias || spec.biases_per_gate() == expected) return;
  throw UnsupportedError(message("[", call, "] the network has ", spec.biases_per_gate(),
                                 " biases a gate, which Keras cannot hold, expected ", expected));
}

std::vector<KerasPlace> places_of(const RnnSpec& spec) {
  std::vector<KerasPlace> places;
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    for (std::int64_t direction = 0; direction < spec.num_dirs(); ++direction) {
      places.push_back({.layer = layer, .direction = direction});
    }
  }
  return places;
}

}  // namespace

CanonicalParams canonical_from_keras(const ValidSpec& spec,
                                     std::span<const ConstArrayView> arrays) {
  require_keras("canonical_from_keras", spec);
  const ParamsLayout layout(spec);
  Array params(spec->dtype, {layout.size()});
  const std::vector<KerasPlace> places = places_of(spec);
  const std::size_t each = keras_shapes(layout, places[0]).size();
  if (arrays.size() != each * places.size()) {
    throw ArgumentError(message("[canonical_from_keras] ", arrays.size(), " arrays, expected ",
                                each * places.size()));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto part = arrays.subspan(i * each, each);
    const std::vector<Shape> shapes = keras_shapes(layout, places[i]);
    for (std::size_t j = 0; j < each; ++j) {
      if (part[j].shape == shapes[j] && part[j].dtype == spec->dtype) continue;
      throw ArgumentError(message("[canonical_from_keras] array ", i * each + j, " is ",
                                  dtype_name(part[j].dtype), " ", to_string(part[j].shape),
                                  ", expected ", dtype_name(spec->dtype), " ",
                                  to_string(shapes[j])));
    }
    set_from_keras(layout, places[i], part, &params);
  }
  return params_to_canonical(layout, params.view());
}

std::vector<Array> keras_from_canonical(const ValidSpec& spec,
                                        std::span<const ConstArrayView> weights,
                                        std::span<const ConstArrayView> biases) {
  require_keras("keras_from_canonical", spec);
  const ParamsLayout layout(spec);
  const Array params = canonical_to_params(layout, weights, biases);
  std::vector<Array> arrays;
  for (const KerasPlace& place : places_of(spec)) {
    for (Array& array : keras_arrays(layout, place, params.view())) {
      arrays.push_back(std::move(array));
    }
  }
  return arrays;
}

}  // namespace openrnn
