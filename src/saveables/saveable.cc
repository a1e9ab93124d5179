#include "base/message.h"
#include "openrnn/saveables.h"

namespace openrnn {
namespace {

RnnSpec network_of(const std::string& call, RnnMode mode, const Variable& opaque_params,
                   RnnSpec network) {
  if (opaque_params.empty()) {
    throw ArgumentError(message("[", call, "] opaque_params is empty, expected a variable"));
  }
  network.mode = mode;
  network.dtype = opaque_params.dtype();
  return network;
}

// Objects have no cell's name; the normalized forms that no other program has need one, or their
// kernels would be those of another network.
std::string name_among_objects(const RnnSpec& spec) {
  const std::string_view cell = tf_cell_name(spec);
  const bool own = spec.normalizes() && cell != "layer_norm_basic_lstm_cell";
  return own ? message(cell, "/") : std::string();
}

std::vector<ConstArrayView> views_of(const std::vector<Array>& arrays) {
  std::vector<ConstArrayView> views;
  for (const Array& array : arrays) views.push_back(array.view());
  return views;
}

}  // namespace

CudnnRnnSaveable::CudnnRnnSaveable(std::string call, RnnMode mode, Variable opaque_params,
                                   const CudnnSaveableOptions& options)
    : call_(std::move(call)),
      name_(options.name),
      prefix_(options.scope.empty() ? "" : options.scope + "/"),
      opaque_params_(std::move(opaque_params)),
      format_(network_of(call_, mode, opaque_params_, options.network)) {
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
  return format_.to_opaque(call_, prefix_, views_of(tensors));
}

std::vector<std::vector<ObjectPath>> CudnnRnnSaveable::object_paths() const {
  const RnnSpec& spec = format_.spec();
  std::vector<std::vector<ObjectPath>> all;
  const std::string cell = name_among_objects(spec);
  for (const TfTensor& tensor : format_.tensors()) {
    const std::string name = cell + tensor.suffix;
    std::vector<ObjectPath> paths;
    if (spec.direction == Direction::kBidirectional) {
      const char* side = tensor.direction == 0 ? "cells_fw-" : "cells_bw-";
      paths.push_back({message(side, tensor.layer), name});
    } else {
      paths.push_back({message("cell-", tensor.layer), name});
      if (spec.num_layers == 1) paths.push_back({name});
    }
    all.push_back(std::move(paths));
  }
  return all;
}

std::vector<bool> CudnnRnnSaveable::bias_sums() const {
  std::vector<bool> sums;
  for (const TfTensor& tensor : format_.tensors()) sums.push_back(tensor.sums_biases());
  return sums;
}

std::vector<Array> CudnnRnnSaveable::slot_to_tensors(const ConstArrayView& slot) const {
  return format_.slots_from_opaque(call_, slot);
}

Array CudnnRnnSaveable::slot_from_tensors(const std::vector<Array>& tensors) const {
  return format_.slots_to_opaque(call_, prefix_, views_of(tensors));
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

std::shared_ptr<SaveableObject> make_cudnn_saveable(Variable opaque_params,
                                                    const CudnnSaveableOptions& options) {
  switch (options.network.mode) {
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
