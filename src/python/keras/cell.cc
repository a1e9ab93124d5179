#include "python/keras/cell.h"

#include <algorithm>

#include "base/hash/content_hash.h"
#include "base/message.h"
#include "openrnn/runtime.h"

namespace openrnn::python::keras {
namespace {

ValidSpec checked(const RnnSpec& network) {
  if (network.num_layers != 1) {
    throw ArgumentError(message("[KerasCell] ", network.num_layers, " layers, expected one"));
  }
  if (network.dtype != DType::kFloat32 && network.dtype != DType::kFloat64) {
    throw ArgumentError(
        message("[KerasCell] dtype ", dtype_name(network.dtype), ", expected float32 or float64"));
  }
  return ValidSpec(network);
}

// The place of a gate's columns in Keras's arrays.
std::int64_t block_of(const RnnSpec& spec, const ParamRegion& region) {
  if (spec.mode != RnnMode::kGru) return region.gate;
  switch (gates_of(spec.mode)[static_cast<std::size_t>(region.gate)]) {
    case Gate::kZ:
      return 0;
    case Gate::kR:
      return 1;
    default:
      return 2;
  }
}

// Squares of this side are read and written in L1.
constexpr std::int64_t kTile = 16;

// Calls visit(r, c) for every element of a matrix, square after square.
template <class Visit>
void tiled(std::int64_t rows, std::int64_t cols, const Visit& visit) {
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile) {
    const std::int64_t r1 = std::min(rows, r0 + kTile);
    for (std::int64_t c0 = 0; c0 < cols; c0 += kTile) {
      const std::int64_t c1 = std::min(cols, c0 + kTile);
      for (std::int64_t r = r0; r < r1; ++r) {
        for (std::int64_t c = c0; c < c1; ++c) visit(r, c);
      }
    }
  }
}

// Calls visit(region, column of the gate in Keras's arrays, row of the bias) for every region.
template <class Visit>
void each_region(const ParamsLayout& layout, const Visit& visit) {
  for (const auto& regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) {
      const std::int64_t row = region.role == ParamRole::kRecurrentBias ? 1 : 0;
      visit(region, block_of(layout.spec(), region) * layout.spec().num_units, row);
    }
  }
}

// The array that a region is part of.
template <class Arrays>
auto array_of(const Both<Arrays>& all, const ParamRegion& region) {
  const Arrays& own = all[static_cast<std::size_t>(region.direction)];
  if (region.role == ParamRole::kInputWeight) return own.kernel;
  return region.role == ParamRole::kRecurrentWeight ? own.recurrent : own.bias;
}

template <class T>
void join(const ParamsLayout& layout, const Both<Weights>& weights, T* to) {
  const std::int64_t width = layout.spec().num_gates() * layout.spec().num_units;
  each_region(layout, [&](const ParamRegion& region, std::int64_t column, std::int64_t row) {
    const T* const from = static_cast<const T*>(array_of(weights, region)) + column;
    T* const place = to + region.offset;
    if (region.is_bias()) {
      std::copy_n(from + row * width, region.rows, place);
      return;
    }
    tiled(region.rows, region.cols, [&](std::int64_t r, std::int64_t c) {
      place[r * region.cols + c] = from[c * width + r];
    });
  });
}

template <class T>
void split_as(const ParamsLayout& layout, const T* params, const Both<WeightGradients>& gradients) {
  const std::int64_t width = layout.spec().num_gates() * layout.spec().num_units;
  each_region(layout, [&](const ParamRegion& region, std::int64_t column, std::int64_t row) {
    T* to = static_cast<T*>(array_of(gradients, region));
    if (to == nullptr) return;
    to += column;
    const T* const from = params + region.offset;
    if (region.is_bias()) {
      std::copy_n(from, region.rows, to + row * width);
      return;
    }
    tiled(region.cols, region.rows,
          [&](std::int64_t c, std::int64_t r) { to[c * width + r] = from[r * region.cols + c]; });
  });
}

}  // namespace

Cell::Cell(const RnnSpec& network)
    : spec_(checked(network)), layout_(spec_), engine_(&choose_engine(spec_)) {}

std::int64_t Cell::bias_rows() const {
  if (!spec_->use_bias) return 0;
  return spec_->single_bias ? 1 : 2;
}

std::uint64_t Cell::hash_of(const Both<Weights>& weights) const {
  const auto units = static_cast<std::size_t>(spec_->num_units);
  const std::size_t width = static_cast<std::size_t>(spec_->num_gates()) * units * element();
  std::uint64_t hash = 0;
  for (std::size_t d = 0; d < directions(); ++d) {
    const Weights& own = weights[d];
    hash = content_hash(own.kernel, static_cast<std::size_t>(spec_->input_size) * width, hash);
    hash = content_hash(own.recurrent, units * width, hash);
    hash = content_hash(own.bias, static_cast<std::size_t>(bias_rows()) * width, hash);
  }
  return hash;
}

DeviceArray Cell::joined(const Both<Weights>& weights) const {
  DeviceArray params(device("cpu"), spec_->dtype, {layout_.size()});
  if (spec_->dtype == DType::kFloat64) {
    join(layout_, weights, static_cast<double*>(params.mutable_data()));
  } else {
    join(layout_, weights, static_cast<float*>(params.mutable_data()));
  }
  return params;
}

std::shared_ptr<const PackedParams> Cell::packed(const Both<Weights>& weights,
                                                 const PackOptions& options) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t hash = hash_of(weights);
  const auto serves = [&] {
    return packed_->purpose() == options.purpose || options.purpose == PackFor::kInference;
  };
  if (packed_ && hash_ == hash && serves()) return packed_;
  // Free the old one first: it may be as large as the new one.
  packed_.reset();
  const DeviceArray params = joined(weights);
  packed_ = engine_->pack(spec_, {params.data(), params.dtype(), params.shape()},
                          {options.purpose, options.max_threads, params.share()});
  ++packings_;
  // Another thread may have written to the weights meanwhile: then nothing is known of them.
  hash_ = hash;
  auto result = packed_;
  if (hash_of(weights) != hash) packed_.reset();
  return result;
}

void Cell::split(const void* params, const Both<WeightGradients>& to) const {
  if (spec_->dtype == DType::kFloat64) {
    split_as(layout_, static_cast<const double*>(params), to);
  } else {
    split_as(layout_, static_cast<const float*>(params), to);
  }
}

std::uint64_t Cell::packings() const {
  const std::lock_guard lock(mutex_);
  return packings_;
}

}  // namespace openrnn::python::keras
