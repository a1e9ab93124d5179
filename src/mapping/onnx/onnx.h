// ONNX models as networks, and networks as ONNX models.
#pragma once

#include "openrnn/mapping_onnx.h"

namespace openrnn::mapping {

/// As load_networks.
MappedModel load_onnx(const std::string& path);
/// As save_networks.
void save_onnx(const std::string& path, const MappedModel& model);

}  // namespace openrnn::mapping
