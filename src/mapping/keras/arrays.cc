#include "mapping/keras/arrays.h"

#include <algorithm>
#include <cstring>

namespace openrnn::mapping {

namespace {

// The block in Keras's arrays of a gate of ours.
std::size_t block_of(Gate gate, KerasForm form) {
  switch (gate) {
    case Gate::kI:
    case Gate::kZ:
    case Gate::kH:
      return 0;
    case Gate::kF:
      return form == KerasForm::kSplit ? 2 : 1;
    case Gate::kC:
      return form == KerasForm::kSplit ? 1 : 2;
    case Gate::kR:
      return 1;
    case Gate::kN:
      return 2;
    case Gate::kO:
      return 3;
  }
  return 0;
}

/// Where one element of a region is: which array, and which element of it.
struct KerasElement {
  std::size_t array = 0, at = 0;
};

// Of `region` at [row, col]; `units` U, `gates` G.
KerasElement find_element(const ParamRegion& region, KerasForm form, Gate gate, std::size_t row,
                          std::size_t col, std::size_t units, std::size_t gates) {
  const std::size_t block = block_of(gate, form);
  const std::size_t part = region.is_bias()                             ? 2
                           : region.role == ParamRole::kRecurrentWeight ? 1
                                                                        : 0;
  if (form == KerasForm::kSplit) {
    return {3 * block + part, part == 2 ? row : col * units + row};
  }
  const std::size_t width = gates * units, first = block * units;
  if (part == 2) {
    const bool recurrent = region.role == ParamRole::kRecurrentBias;
    return {2, (recurrent ? width : 0) + first + row};
  }
  if (form == KerasForm::kUsual) return {part, col * width + first + row};
  // cuDNN's row-major [U, in], wrapped into rows of U.
  const std::size_t flat = row * static_cast<std::size_t>(region.cols) + col;
  return {part, flat / units * width + first + flat % units};
}

// Calls take(region offset, array, element) for every element of the layer and direction.
template <class Take>
void for_each_element(const ParamsLayout& layout, const KerasPlace& place, const Take& take) {
  const RnnSpec& spec = layout.spec();
  const auto units = static_cast<std::size_t>(spec.num_units);
  const auto gates = static_cast<std::size_t>(spec.num_gates());
  for (const auto list : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : list) {
      if (region.layer != place.layer || region.direction != place.direction) continue;
      const Gate gate = gates_of(spec.mode)[static_cast<std::size_t>(region.gate)];
      const auto rows = static_cast<std::size_t>(region.rows);
      const auto cols = static_cast<std::size_t>(region.cols);
      // A matrix is transposed some rows at a time: those are one cache line of Keras's array.
      constexpr std::size_t kRows = 16;
      for (std::size_t first = 0; first < rows; first += kRows) {
        for (std::size_t col = 0; col < cols; ++col) {
          for (std::size_t row = first; row < std::min(first + kRows, rows); ++row) {
            take(static_cast<std::size_t>(region.offset) + row * cols + col,
                 find_element(region, place.form, gate, row, col, units, gates));
          }
        }
      }
    }
  }
}

}  // namespace

std::vector<Shape> keras_shapes(const ParamsLayout& layout, const KerasPlace& place) {
  const RnnSpec& spec = layout.spec();
  const std::int64_t input = spec.layer_input_size(place.layer), units = spec.num_units;
  const int biases = spec.biases_per_gate();
  std::vector<Shape> shapes;
  if (place.form == KerasForm::kSplit) {
    for (std::int64_t gate = 0; gate < spec.num_gates(); ++gate) {
      shapes.insert(shapes.end(), {{input, units}, {units, units}, {units}});
    }
    return shapes;
  }
  const std::int64_t width = spec.num_gates() * units;
  shapes = {{input, width}, {units, width}};
  if (biases == 1) shapes.push_back({width});
  if (biases == 2) {
    shapes.push_back(place.form == KerasForm::kCudnn ? Shape{2 * width} : Shape{2, width});
  }
  return shapes;
}

void set_from_keras(const ParamsLayout& layout, const KerasPlace& place,
                    std::span<const ConstArrayView> arrays, Array* params) {
  const std::size_t width = dtype_size(params->dtype());
  auto* const out = static_cast<std::byte*>(params->data());
  for_each_element(layout, place, [&](std::size_t offset, const KerasElement& from) {
    const auto* const array = static_cast<const std::byte*>(arrays[from.array].data);
    std::memcpy(out + offset * width, array + from.at * width, width);
  });
}

std::vector<Array> keras_arrays(const ParamsLayout& layout, const KerasPlace& place,
                                const ConstArrayView& params) {
  const std::size_t width = dtype_size(params.dtype);
  const auto* const in = static_cast<const std::byte*>(params.data);
  std::vector<Array> arrays;
  for (const Shape& shape : keras_shapes(layout, place)) arrays.emplace_back(params.dtype, shape);
  for_each_element(layout, place, [&](std::size_t offset, const KerasElement& to) {
    auto* const array = static_cast<std::byte*>(arrays[to.array].data());
    std::memcpy(array + to.at * width, in + offset * width, width);
  });
  return arrays;
}

}  // namespace openrnn::mapping
