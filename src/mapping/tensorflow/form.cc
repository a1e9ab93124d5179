#include "mapping/tensorflow/form.h"

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

Array tf_params(const RnnSpec& spec, bool is_keras, std::span<const ConstArrayView> tensors) {
  if (is_keras) return keras_buffer(spec, tensors);
  return TfCanonicalFormat(spec).to_opaque("load_networks", "", tensors);
}

Array tf_slot(const RnnSpec& spec, bool is_keras, std::span<const ConstArrayView> tensors) {
  if (is_keras) return keras_buffer(spec, tensors);
  return TfCanonicalFormat(spec).slots_to_opaque("load_networks", "", tensors);
}

}  // namespace openrnn::mapping
