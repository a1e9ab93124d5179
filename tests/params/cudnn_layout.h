// The table of tests/golden/cudnn_layout.txt: where cuDNN keeps each matrix and bias.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "openrnn/params.h"

namespace openrnn::testing {

/// Networks of every kind: modes, directions, input modes, layers, projection, types, odd sizes.
inline std::vector<RnnSpec> layout_specs() {
  std::vector<RnnSpec> specs;
  for (const RnnMode mode : {RnnMode::kRnnRelu, RnnMode::kRnnTanh, RnnMode::kLstm, RnnMode::kGru}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
        for (const std::int64_t units : {1, 7, 33, 128}) {
          for (const std::int64_t layers : {1, 3}) {
            for (const InputMode input : {InputMode::kLinearInput, InputMode::kSkipInput}) {
              for (const std::int64_t projection : {0, 5}) {
                RnnSpec spec;
                spec.mode = mode;
                spec.direction = direction;
                spec.dtype = dtype;
                spec.num_units = units;
                spec.num_layers = layers;
                spec.input_mode = input;
                spec.input_size = input == InputMode::kSkipInput ? units : units / 2 + 3;
                spec.num_proj = projection;
                if (projection > 0 && (!spec.is_lstm() || !spec.projecting())) continue;
                specs.push_back(spec);
              }
            }
          }
        }
      }
    }
  }
  return specs;
}

/// One line: the network, the size of all, then the offset of each region in the order of
/// ParamsLayout, weights before biases; '-' for what is not there. In elements.
inline std::string layout_line(const RnnSpec& spec, std::int64_t size,
                               const std::vector<std::int64_t>& offsets) {
  std::ostringstream line;
  line << to_string(spec.mode) << " L" << spec.num_layers << " U" << spec.num_units << " I"
       << spec.input_size << " P" << spec.num_proj << " " << to_string(spec.direction) << " "
       << to_string(spec.input_mode) << " " << dtype_name(spec.dtype) << ": " << size << ";";
  const ParamsLayout layout(spec);
  std::size_t n = 0;
  for (const auto regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) {
      line << " ";
      if (region.size() > 0) {
        line << offsets.at(n);
      } else {
        line << "-";
      }
      ++n;
    }
  }
  return line.str();
}

/// The line as ParamsLayout would have it.
inline std::string expected_line(const RnnSpec& spec) {
  const ParamsLayout layout(spec);
  std::vector<std::int64_t> offsets;
  for (const auto regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) offsets.push_back(region.offset);
  }
  return layout_line(spec, layout.size(), offsets);
}

}  // namespace openrnn::testing
