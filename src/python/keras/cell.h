// A recurrent layer of Keras: its network, and its three arrays of weights <-> the opaque buffer.
#pragma once

#include <mutex>

#include "openrnn/device.h"
#include "openrnn/engine.h"

namespace openrnn::python::keras {

/// Keras's arrays, row-major: kernel [I, G*U], recurrent kernel [U, G*U], bias [G*U], of a GRU with
/// reset_after [2, G*U], null without biases. Gates i f c o of LSTM, z r h of GRU.
struct Weights {
  const void* kernel = nullptr;
  const void* recurrent = nullptr;
  const void* bias = nullptr;
};
/// The same to be written; null pointers are not wanted.
struct WeightGradients {
  void* kernel = nullptr;
  void* recurrent = nullptr;
  void* bias = nullptr;
};

/// One layer, one direction. Thread-safe.
class Cell {
 public:
  /// Throws: ArgumentError for more than one layer or direction, or a dtype other than float32 and
  /// float64.
  explicit Cell(const RnnSpec& network);

  const RnnSpec& spec() const noexcept { return *spec_; }
  const Engine& engine() const noexcept { return *engine_; }
  /// Rows of the bias: 0, 1, or 2.
  std::int64_t bias_rows() const;
  std::size_t element() const noexcept { return dtype_size(spec_->dtype); }
  const ParamsLayout& layout() const noexcept { return layout_; }

  /// Packed from what is in `weights` now: what was packed last if it was the same.
  std::shared_ptr<const PackedParams> packed(const Weights& weights, PackFor purpose);
  /// A gradient in the opaque layout as Keras's arrays.
  void split(const void* params, const WeightGradients& to) const;
  /// How often weights were packed.
  std::uint64_t packings() const;

 private:
  std::uint64_t hash_of(const Weights& weights) const;
  DeviceArray joined(const Weights& weights) const;

  ValidSpec spec_;
  ParamsLayout layout_;
  const Engine* engine_;
  mutable std::mutex mutex_ = {};
  std::shared_ptr<const PackedParams> packed_ = {};
  std::uint64_t hash_ = 0, packings_ = 0;
};

}  // namespace openrnn::python::keras
