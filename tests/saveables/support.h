// Buffers whose elements all differ, and the specs that tests walk.
#pragma once

#include <gtest/gtest.h>

#include "openrnn/saveables.h"

namespace openrnn::testing {

inline RnnSpec rnn_spec(RnnMode mode, std::int64_t num_layers, std::int64_t num_units,
                        std::int64_t input_size, DType dtype = DType::kFloat32) {
  RnnSpec spec;
  spec.mode = mode;
  spec.num_layers = num_layers;
  spec.num_units = num_units;
  spec.input_size = input_size;
  spec.dtype = dtype;
  return spec;
}

/// Multiples of 1/1024 (bfloat16: 1/128) within [-1, 1): exact in every dtype, and no sum of two
/// is rounded in float32.
inline Array numbered(const RnnSpec& spec) {
  const std::int64_t size = params_size(spec);
  const std::size_t unit = spec.dtype == DType::kBfloat16 ? 128 : 1024;
  std::vector<double> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t number = (i * 37 + 11) % (2 * unit - 1);
    values[i] = static_cast<double>(number) / static_cast<double>(unit) - 1.0;
  }
  const Array doubles = Array::of<double>({size}, values);
  return spec.dtype == DType::kFloat64 ? doubles : cast(doubles.view(), spec.dtype);
}

inline bool same_bits(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const auto *x = static_cast<const char*>(a.data()), *y = static_cast<const char*>(b.data());
  return std::equal(x, x + a.size_bytes(), y);
}

inline std::vector<ConstArrayView> views(const std::vector<Array>& arrays) {
  std::vector<ConstArrayView> result;
  for (const Array& array : arrays) result.push_back(array.view());
  return result;
}

/// Every mode, direction, input mode and dtype at two layers; a projection for lstm.
inline std::vector<RnnSpec> all_specs() {
  std::vector<RnnSpec> specs;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const DType dtype :
           {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
        RnnSpec spec = rnn_spec(mode, 2, 7, 3);
        spec.direction = direction;
        spec.dtype = dtype;
        specs.push_back(spec);
        spec.input_mode = InputMode::kSkipInput;
        spec.input_size = 7;
        specs.push_back(spec);
        if (mode != RnnMode::kLstm) continue;
        spec.input_mode = InputMode::kLinearInput;
        spec.num_proj = 5;
        specs.push_back(spec);
      }
    }
  }
  return specs;
}

/// The message of what `call` throws as `E`; '' when it throws nothing.
template <class E, class Call>
std::string thrown(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

}  // namespace openrnn::testing
