#include "base/message.h"
#include "openrnn/saveables.h"

namespace openrnn {
namespace {

RnnSpec spec_of(const std::string& call, RnnMode mode, const Variable& opaque_params,
                const CudnnSaveableOptions& options) {
  if (opaque_params.empty()) {
    throw ArgumentError(message("[", call, "] opaque_params is empty, expected a variable"));
  }
  return {.mode = mode,
          .num_layers = options.num_layers,
          .num_units = options.num_units,
          .input_size = options.input_size,
          .input_mode = options.input_mode,
          .direction = options.direction,
          .dtype = opaque_params.dtype(),
          .num_proj = options.num_proj,
          .cell_clip = {}};
}

}  // namespace

CudnnRnnSaveable::CudnnRnnSaveable(std::string call, RnnMode mode, Variable opaque_params,
                                   const CudnnSaveableOptions& options)
    : call_(std::move(call)),
      name_(options.name),
      prefix_(options.scope.empty() ? "" : options.scope + "/"),
      opaque_params_(std::move(opaque_params)),
      format_(spec_of(call_, mode, opaque_params_, options)) {
  if (opaque_params_.shape() != Shape{format_.opaque_size()}) {
    throw ArgumentError(message("[", call_, "] opaque_params ", opaque_params_.name(),
                                " has shape ", to_string(opaque_params_.shape()), ", expected [",
                                format_.opaque_size(), "] for ", describe(format_.spec())));
  }
}

std::vector<std::string> CudnnRnnSaveable::spec_names() const {
  std::vector<std::string> names;
  for (const TfTensor& tensor : format_.tensors()) names.push_back(prefix_ + tensor.name);
  return names;
}

std::vector<Array> CudnnRnnSaveable::to_tensors(const ConstArrayView& value) const {
  return format_.from_opaque(call_, value);
}

Array CudnnRnnSaveable::from_tensors(const std::vector<Array>& tensors) const {
  std::vector<ConstArrayView> views;
  for (const Array& tensor : tensors) views.push_back(tensor.view());
  return format_.to_opaque(call_, prefix_, views);
}

CudnnLSTMSaveable::CudnnLSTMSaveable(Variable opaque_params, const CudnnSaveableOptions& options)
    : CudnnRnnSaveable("CudnnLSTMSaveable", RnnMode::kLstm, std::move(opaque_params), options) {}

CudnnGRUSaveable::CudnnGRUSaveable(Variable opaque_params, const CudnnSaveableOptions& options)
    : CudnnRnnSaveable("CudnnGRUSaveable", RnnMode::kGru, std::move(opaque_params), options) {}

CudnnRNNTanhSaveable::CudnnRNNTanhSaveable(Variable opaque_params,
                                           const CudnnSaveableOptions& options)
    : CudnnRnnSaveable("CudnnRNNTanhSaveable", RnnMode::kRnnTanh, std::move(opaque_params),
                       options) {}

CudnnRNNReluSaveable::CudnnRNNReluSaveable(Variable opaque_params,
                                           const CudnnSaveableOptions& options)
    : CudnnRnnSaveable("CudnnRNNReluSaveable", RnnMode::kRnnRelu, std::move(opaque_params),
                       options) {}

std::shared_ptr<SaveableObject> make_cudnn_saveable(RnnMode mode, Variable opaque_params,
                                                    const CudnnSaveableOptions& options) {
  switch (mode) {
    case RnnMode::kLstm:
      return std::make_shared<CudnnLSTMSaveable>(std::move(opaque_params), options);
    case RnnMode::kGru:
      return std::make_shared<CudnnGRUSaveable>(std::move(opaque_params), options);
    case RnnMode::kRnnTanh:
      return std::make_shared<CudnnRNNTanhSaveable>(std::move(opaque_params), options);
    default:
      return std::make_shared<CudnnRNNReluSaveable>(std::move(opaque_params), options);
  }
}

}  // namespace openrnn
