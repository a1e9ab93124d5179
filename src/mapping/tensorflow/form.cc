#include "mapping/tensorflow/form.h"

#include "mapping/support/keras_arrays.h"
#include "saveables/parts.h"

namespace openrnn::mapping {

namespace {

KerasPlace place_of(const TfFormTensor& tensor) {
  return {.layer = tensor.layer, .direction = tensor.direction};
}

}  // namespace

std::vector<TfFormTensor> tf_form(const RnnSpec& spec, bool is_keras) {
  std::vector<TfFormTensor> form;
  if (!is_keras) {
    const TfCanonicalFormat format(spec);
    for (const TfTensor& tensor : format.tensors()) {
      form.push_back({tensor.layer, tensor.direction, tensor.suffix, tensor.shape, 0});
    }
    return form;
  }
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    for (std::int64_t direction = 0; direction < spec.num_dirs(); ++direction) {
      const KerasPlace place{.layer = layer, .direction = direction};
      std::size_t array = 0;
      for (Shape& shape : keras_shapes(ParamsLayout(spec), place)) {
        form.push_back({layer, direction, keras_array_name(array), std::move(shape), array});
        ++array;
      }
    }
  }
  return form;
}

Array tf_params(const RnnSpec& spec, bool is_keras, const TfRowReader& read) {
  const ParamsLayout layout(spec);
  Array params(spec.dtype, {layout.size()});
  const std::vector<TfFormTensor> form = tf_form(spec, is_keras);
  const std::vector<TfTensor> tensors =
      is_keras ? std::vector<TfTensor>() : TfCanonicalFormat(spec).tensors();
  for (std::size_t i = 0; i < form.size(); ++i) {
    read(i, [&](std::int64_t first, const ConstArrayView& rows) {
      if (is_keras) {
        set_keras_rows(layout, place_of(form[i]), form[i].array, first, rows, &params);
      } else {
        saveables::set_rows(tensors[i], saveables::BiasForm::kSum, first, rows, &params);
      }
    });
  }
  return params;
}

Array tf_slot(const RnnSpec& spec, bool is_keras, std::span<const ConstArrayView> tensors) {
  if (!is_keras) return TfCanonicalFormat(spec).slots_to_opaque("load_networks", "", tensors);
  const ParamsLayout layout(spec);
  Array slot(tensors[0].dtype, {layout.size()});
  const std::vector<TfFormTensor> form = tf_form(spec, is_keras);
  for (std::size_t i = 0; i < form.size(); ++i) {
    set_keras_rows(layout, place_of(form[i]), form[i].array, 0, tensors[i], &slot);
  }
  return slot;
}

}  // namespace openrnn::mapping
