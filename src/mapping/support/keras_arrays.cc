#include "mapping/support/keras_arrays.h"

#include <algorithm>
#include <cstring>

#include "base/array/transpose.h"

namespace openrnn::mapping {

namespace {

// The block in Keras's arrays of a gate of ours.
std::int64_t block_of(Gate gate, KerasForm form) {
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

/// Where Keras has a region of the buffer: from which row and column of which array on.
struct KerasBlock {
  const ParamRegion* region;
  std::size_t array;
  std::int64_t row, column;
  /// cuDNN's row-major [U, in], in as many rows of U as it fills; else the region transposed.
  bool wrapped;

  std::int64_t rows() const { return region->cols; }
  std::int64_t columns() const { return region->rows; }
};

KerasBlock block_of(const RnnSpec& spec, const ParamRegion& region, KerasForm form) {
  const Gate gate = gates_of(spec.mode)[static_cast<std::size_t>(region.gate)];
  const std::int64_t block = block_of(gate, form), units = spec.num_units;
  const std::size_t part = region.is_bias()                             ? 2
                           : region.role == ParamRole::kRecurrentWeight ? 1
                                                                        : 0;
  if (form == KerasForm::kSplit) {
    return {&region, 3 * static_cast<std::size_t>(block) + part, 0, 0, false};
  }
  if (form == KerasForm::kCudnn) {
    // All biases of the input, and then those of the state, are one row.
    const std::int64_t first =
        region.role == ParamRole::kRecurrentBias ? spec.num_gates() * units : 0;
    return {&region, part, 0, first + block * units, part != 2};
  }
  return {&region, part, region.role == ParamRole::kRecurrentBias ? 1 : 0, block * units, false};
}

template <class Visit>
void for_each_block(const ParamsLayout& layout, const KerasPlace& place, const Visit& visit) {
  for (const auto list : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : list) {
      if (region.layer != place.layer || region.direction != place.direction) continue;
      visit(block_of(layout.spec(), region, place.form));
    }
  }
}

}  // namespace

const char* keras_array_name(std::size_t array) {
  constexpr const char* kNames[] = {"kernel", "recurrent_kernel", "bias"};
  return kNames[array];
}

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

void set_keras_rows(const ParamsLayout& layout, const KerasPlace& place, std::size_t array,
                    std::int64_t first, const ConstArrayView& rows, Array* params) {
  const auto width = static_cast<std::int64_t>(dtype_size(params->dtype()));
  const std::int64_t count = rows.shape.size() < 2 ? 1 : rows.shape[0], stride = rows.shape.back();
  const auto* const from = static_cast<const std::byte*>(rows.data);
  auto* const to = static_cast<std::byte*>(params->data());
  for_each_block(layout, place, [&](const KerasBlock& block) {
    const std::int64_t begin = std::max(first, block.row),
                       end = std::min(first + count, block.row + block.rows());
    if (block.array != array || begin >= end) return;
    const std::byte* const source = from + ((begin - first) * stride + block.column) * width;
    if (!block.wrapped) {
      transpose(source, static_cast<std::size_t>(stride), static_cast<std::size_t>(end - begin),
                static_cast<std::size_t>(block.columns()), static_cast<std::size_t>(width),
                to + (block.region->offset + begin - block.row) * width,
                static_cast<std::size_t>(block.rows()));
      return;
    }
    for (std::int64_t row = begin; row < end; ++row) {
      std::memcpy(to + (block.region->offset + row * block.columns()) * width,
                  source + (row - begin) * stride * width,
                  static_cast<std::size_t>(block.columns() * width));
    }
  });
}

void set_from_keras(const ParamsLayout& layout, const KerasPlace& place,
                    std::span<const ConstArrayView> arrays, Array* params) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    set_keras_rows(layout, place, i, 0, arrays[i], params);
  }
}

std::vector<Array> keras_arrays(const ParamsLayout& layout, const KerasPlace& place,
                                const ConstArrayView& params) {
  const auto width = static_cast<std::int64_t>(dtype_size(params.dtype));
  const auto* const from = static_cast<const std::byte*>(params.data);
  std::vector<Array> arrays;
  for (const Shape& shape : keras_shapes(layout, place)) arrays.emplace_back(params.dtype, shape);
  for_each_block(layout, place, [&](const KerasBlock& block) {
    Array& array = arrays[block.array];
    const std::int64_t stride = array.shape().back();
    std::byte* const to =
        static_cast<std::byte*>(array.data()) + (block.row * stride + block.column) * width;
    const std::byte* const source = from + block.region->offset * width;
    if (!block.wrapped) {
      transpose(source, static_cast<std::size_t>(block.rows()),
                static_cast<std::size_t>(block.columns()), static_cast<std::size_t>(block.rows()),
                static_cast<std::size_t>(width), to, static_cast<std::size_t>(stride));
      return;
    }
    for (std::int64_t row = 0; row < block.rows(); ++row) {
      std::memcpy(to + row * stride * width, source + row * block.columns() * width,
                  static_cast<std::size_t>(block.columns() * width));
    }
  });
  return arrays;
}

}  // namespace openrnn::mapping
