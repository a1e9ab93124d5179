// The arrays of one cell of Keras: kernel [in, G*U], recurrent_kernel [U, G*U], bias.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "openrnn/params.h"

namespace openrnn::mapping {

struct KerasTensor {
  std::string_view name;
  Shape shape;
};
/// kernel, recurrent_kernel, and bias where the network has biases: [G*U], or [2, G*U] with those
/// of the input and those of the state (a GRU that resets after the product).
std::vector<KerasTensor> keras_cell_tensors(const RnnSpec& spec, std::int64_t layer);
/// Writes arrays in that order and of these shapes to their place in an opaque buffer of the same
/// dtype. Blocks of columns: i f c o, and z r h of a GRU.
void set_keras_cell(const ParamsLayout& layout, std::int64_t layer, std::int64_t direction,
                    std::span<const ConstArrayView> arrays, Array* params);
/// The inverse.
std::vector<Array> keras_cell_of(const ParamsLayout& layout, std::int64_t layer,
                                 std::int64_t direction, const ConstArrayView& params);

}  // namespace openrnn::mapping
