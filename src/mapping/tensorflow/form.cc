#include "mapping/tensorflow/form.h"

#include <cstring>

#include "mapping/support/keras_cell.h"
#include "openrnn/saveables.h"

namespace openrnn::mapping {

namespace {

// Of the second of Keras's forms: three tensors a cell, two without biases.
Array keras_buffer(const RnnSpec& spec, std::span<const ConstArrayView> tensors) {
  const ParamsLayout layout(spec);
  Array params(tensors[0].dtype, {layout.size()});
  const std::size_t each = spec.use_bias ? 3 : 2;
  std::size_t at = 0;
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    for (std::int64_t direction = 0; direction < spec.num_dirs(); ++direction, at += each) {
      set_keras_cell(layout, layer, direction, tensors.subspan(at, each), &params);
    }
  }
  return params;
}

}  // namespace

std::vector<TfFormTensor> tf_form(const RnnSpec& spec, bool is_keras) {
  std::vector<TfFormTensor> form;
  if (!is_keras) {
    const TfCanonicalFormat format(spec);
    for (const TfTensor& tensor : format.tensors()) {
      form.push_back({tensor.layer, tensor.direction, tensor.suffix, tensor.shape});
    }
    return form;
  }
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    for (std::int64_t direction = 0; direction < spec.num_dirs(); ++direction) {
      for (const KerasTensor& tensor : keras_cell_tensors(spec, layer)) {
        form.push_back({layer, direction, std::string(tensor.name), tensor.shape});
      }
    }
  }
  return form;
}

namespace {

// A network of that layer alone.
RnnSpec tf_layer_of(RnnSpec spec, std::int64_t layer) {
  if (layer > 0) spec.input_size = spec.num_dirs() * spec.hidden_size();
  spec.num_layers = 1;
  return spec;
}

// Regions are in the same order in both; `from` is of one layer.
void copy_tf_layer(const ParamsLayout& from, const Array& values, const ParamsLayout& to,
                   std::int64_t layer, Array* params) {
  const std::size_t width = dtype_size(values.dtype());
  const auto copy = [&](std::span<const ParamRegion> one, std::span<const ParamRegion> all) {
    std::size_t next = 0;
    for (const ParamRegion& region : all) {
      if (region.layer != layer) continue;
      const ParamRegion& of_layer = one[next++];
      if (region.size() == 0) continue;
      std::memcpy(
          static_cast<std::byte*>(params->data()) + static_cast<std::size_t>(region.offset) * width,
          static_cast<const std::byte*>(values.data()) +
              static_cast<std::size_t>(of_layer.offset) * width,
          static_cast<std::size_t>(region.size()) * width);
    }
  };
  copy(from.weights(), to.weights());
  copy(from.biases(), to.biases());
}

}  // namespace

Array tf_params(const RnnSpec& spec, bool is_keras, const std::function<Array(std::size_t)>& read) {
  const ParamsLayout layout(spec);
  Array params(spec.dtype, {layout.size()});
  const std::vector<TfFormTensor> form = tf_form(spec, is_keras);
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    const RnnSpec alone = tf_layer_of(spec, layer);
    std::vector<Array> arrays;
    std::vector<ConstArrayView> views;
    for (std::size_t i = 0; i < form.size(); ++i) {
      if (form[i].layer == layer) arrays.push_back(read(i));
    }
    for (const Array& array : arrays) views.push_back(array.view());
    const Array part = is_keras ? keras_buffer(alone, views)
                                : TfCanonicalFormat(alone).to_opaque("load_networks", "", views);
    copy_tf_layer(ParamsLayout(alone), part, layout, layer, &params);
  }
  return params;
}

Array tf_slot(const RnnSpec& spec, bool is_keras, std::span<const ConstArrayView> tensors) {
  if (is_keras) return keras_buffer(spec, tensors);
  return TfCanonicalFormat(spec).slots_to_opaque("load_networks", "", tensors);
}

}  // namespace openrnn::mapping
