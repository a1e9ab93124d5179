#include "base/message.h"
#include "openrnn/saveables.h"

namespace openrnn {
namespace {

// By kind; after the format's tensors come the parts of the recurrent biases.
TfCanonicalParams sorted(const TfCanonicalFormat& format, std::vector<Array> arrays) {
  TfCanonicalParams params;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (i >= format.tensors().size()) {
      params.recurrent_biases.push_back(std::move(arrays[i]));
      continue;
    }
    const TfTensorKind kind = format.tensors()[i].kind;
    (kind == TfTensorKind::kWeight       ? params.weights
     : kind == TfTensorKind::kProjection ? params.weights_proj
                                         : params.biases)
        .push_back(std::move(arrays[i]));
  }
  return params;
}

}  // namespace

CudnnParamsFormatConverter::CudnnParamsFormatConverter(std::string call, RnnMode mode,
                                                       RnnSpec network)
    : call_(std::move(call)), spec_(network) {
  spec_.mode = mode;
  spec_.validate();
}

TfCanonicalFormat CudnnParamsFormatConverter::format_for(const ConstArrayView& values) const {
  if (!is_floating(values.dtype)) {
    throw ArgumentError(message("[", call_, "] values are ", dtype_name(values.dtype),
                                ", expected float16, bfloat16, float32 or float64"));
  }
  RnnSpec spec = spec_;
  spec.dtype = values.dtype;
  return TfCanonicalFormat(spec);
}

// A longer buffer belongs to another network, and is refused.
void CudnnParamsFormatConverter::check_size(const TfCanonicalFormat& format,
                                            const ConstArrayView& buffer) const {
  if (buffer.shape.size() == 1 && buffer.shape[0] > format.opaque_size()) {
    throw ArgumentError(message("[", call_, "] the buffer has ", buffer.shape[0],
                                " elements, expected ", format.opaque_size(), " for ",
                                describe(format.spec())));
  }
}

std::vector<ConstArrayView> CudnnParamsFormatConverter::in_order(
    const TfCanonicalFormat& format, std::span<const ConstArrayView> tf_canonicals,
    std::span<const ConstArrayView> weights_proj) const {
  std::size_t projections = 0;
  for (const TfTensor& tensor : format.tensors()) {
    projections += tensor.kind == TfTensorKind::kProjection;
  }
  const std::size_t others = format.tensors().size() - projections;
  if (tf_canonicals.size() != others || weights_proj.size() != projections) {
    throw ArgumentError(message("[", call_, "] ", tf_canonicals.size(), " tf_canonicals and ",
                                weights_proj.size(), " weights_proj, expected ", others, " and ",
                                projections, " for ", describe(format.spec())));
  }
  std::vector<ConstArrayView> tensors;
  for (const TfTensor& tensor : format.tensors()) {
    std::span<const ConstArrayView>& from =
        tensor.kind == TfTensorKind::kProjection ? weights_proj : tf_canonicals;
    tensors.push_back(from.front());
    from = from.subspan(1);
  }
  return tensors;
}

Array CudnnParamsFormatConverter::tf_canonical_to_opaque(
    std::span<const ConstArrayView> tf_canonicals,
    std::span<const ConstArrayView> weights_proj) const {
  const TfCanonicalFormat format =
      format_for(tf_canonicals.empty() ? ConstArrayView{} : tf_canonicals[0]);
  return format.to_opaque(call_, "", in_order(format, tf_canonicals, weights_proj));
}

TfCanonicalParams CudnnParamsFormatConverter::opaque_to_tf_canonical(
    const ConstArrayView& opaque_params) const {
  const TfCanonicalFormat format = format_for(opaque_params);
  check_size(format, opaque_params);
  return sorted(format, format.from_opaque(call_, opaque_params));
}

TfCanonicalParams CudnnParamsFormatConverter::opaque_slots_to_tf(
    const ConstArrayView& opaque_slots) const {
  const TfCanonicalFormat format = format_for(opaque_slots);
  check_size(format, opaque_slots);
  return sorted(format, format.slots_from_opaque(call_, opaque_slots));
}

Array CudnnParamsFormatConverter::tf_slots_to_opaque(
    std::span<const ConstArrayView> tf_slots, std::span<const ConstArrayView> weights_proj,
    std::span<const ConstArrayView> recurrent_biases) const {
  const TfCanonicalFormat format = format_for(tf_slots.empty() ? ConstArrayView{} : tf_slots[0]);
  std::vector<ConstArrayView> tensors = in_order(format, tf_slots, weights_proj);
  tensors.insert(tensors.end(), recurrent_biases.begin(), recurrent_biases.end());
  return format.slots_to_opaque(call_, "", tensors);
}

CudnnParamsFormatConverterLSTM::CudnnParamsFormatConverterLSTM(const RnnSpec& network)
    : CudnnParamsFormatConverter("CudnnParamsFormatConverterLSTM", RnnMode::kLstm, network) {}

CudnnParamsFormatConverterGRU::CudnnParamsFormatConverterGRU(const RnnSpec& network)
    : CudnnParamsFormatConverter("CudnnParamsFormatConverterGRU", RnnMode::kGru, network) {}

CudnnParamsFormatConverterTanh::CudnnParamsFormatConverterTanh(const RnnSpec& network)
    : CudnnParamsFormatConverter("CudnnParamsFormatConverterTanh", RnnMode::kRnnTanh, network) {}

CudnnParamsFormatConverterRelu::CudnnParamsFormatConverterRelu(const RnnSpec& network)
    : CudnnParamsFormatConverter("CudnnParamsFormatConverterRelu", RnnMode::kRnnRelu, network) {}

}  // namespace openrnn
