#include "mapping/support/keras_cell.h"

#include <cstring>

namespace openrnn::mapping {

namespace {

// Where Keras has the block of a gate, by its number in gates_of(mode).
std::int64_t keras_block(RnnMode mode, std::int64_t gate) {
  constexpr std::int64_t kGru[] = {1, 0, 2};  // r z n of ours in z r h
  return mode == RnnMode::kGru ? kGru[gate] : gate;
}

/// An element of a region is that of an array, both as numbers from their starts.
struct KerasElements {
  std::size_t array;
  std::int64_t in_array, in_params;
};

// Calls visit for each element of the cell.
template <class Visit>
void for_each_element(const ParamsLayout& layout, std::int64_t layer, std::int64_t direction,
                      const Visit& visit) {
  const RnnSpec& spec = layout.spec();
  const std::int64_t columns = spec.num_gates() * spec.num_units;
  const auto visit_region = [&](const ParamRegion& region, std::size_t array, std::int64_t row) {
    const std::int64_t first = row * columns + keras_block(spec.mode, region.gate) * region.rows;
    for (std::int64_t i = 0; i < region.rows; ++i) {
      for (std::int64_t j = 0; j < region.cols; ++j) {
        visit(KerasElements{array, first + j * columns + i, region.offset + i * region.cols + j});
      }
    }
  };
  for (std::int64_t gate = 0; gate < spec.num_gates(); ++gate) {
    visit_region(layout.weight(layer, direction, ParamRole::kInputWeight, gate), 0, 0);
    visit_region(layout.weight(layer, direction, ParamRole::kRecurrentWeight, gate), 1, 0);
    if (!spec.use_bias) continue;
    visit_region(layout.bias(layer, direction, ParamRole::kInputBias, gate), 2, 0);
    if (spec.single_bias) continue;
    visit_region(layout.bias(layer, direction, ParamRole::kRecurrentBias, gate), 2, 1);
  }
}

}  // namespace

std::vector<KerasTensor> keras_cell_tensors(const RnnSpec& spec, std::int64_t layer) {
  const std::int64_t columns = spec.num_gates() * spec.num_units;
  std::vector<KerasTensor> tensors = {{"kernel", {spec.layer_input_size(layer), columns}},
                                      {"recurrent_kernel", {spec.num_units, columns}}};
  if (spec.use_bias) {
    tensors.push_back({"bias", spec.single_bias ? Shape{columns} : Shape{2, columns}});
  }
  return tensors;
}

void set_keras_cell(const ParamsLayout& layout, std::int64_t layer, std::int64_t direction,
                    std::span<const ConstArrayView> arrays, Array* params) {
  const std::size_t width = dtype_size(params->dtype());
  auto* const to = static_cast<std::byte*>(params->data());
  for_each_element(layout, layer, direction, [&](const KerasElements& at) {
    std::memcpy(to + static_cast<std::size_t>(at.in_params) * width,
                static_cast<const std::byte*>(arrays[at.array].data) +
                    static_cast<std::size_t>(at.in_array) * width,
                width);
  });
}

std::vector<Array> keras_cell_of(const ParamsLayout& layout, std::int64_t layer,
                                 std::int64_t direction, const ConstArrayView& params) {
  std::vector<Array> arrays;
  for (KerasTensor& tensor : keras_cell_tensors(layout.spec(), layer)) {
    arrays.emplace_back(params.dtype, std::move(tensor.shape));
  }
  const std::size_t width = dtype_size(params.dtype);
  const auto* const from = static_cast<const std::byte*>(params.data);
  for_each_element(layout, layer, direction, [&](const KerasElements& at) {
    std::memcpy(static_cast<std::byte*>(arrays[at.array].data()) +
                    static_cast<std::size_t>(at.in_array) * width,
                from + static_cast<std::size_t>(at.in_params) * width, width);
  });
  return arrays;
}

}  // namespace openrnn::mapping
