// A recurrent layer of Keras, or the two of a Bidirectional: its network, and the arrays of weights
// of each direction <-> the opaque buffer.
#pragma once

#include <array>
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

/// One thing of each direction, the forward one first; the second is not used where there is one.
template <class T>
using Both = std::array<T, 2>;

/// One layer of one direction or two. Thread-safe. Shared from itself, as a pointer that Python
/// makes of an object of its own would expire with the call that it is made for.
class Cell : public std::enable_shared_from_this<Cell> {
 public:
  /// Throws: ArgumentError for more than one layer, or a dtype other than float32 and float64.
  explicit Cell(const RnnSpec& network);

  const RnnSpec& spec() const noexcept { return *spec_; }
  const Engine& engine() const noexcept { return *engine_; }
  std::size_t directions() const { return static_cast<std::size_t>(spec_->num_dirs()); }
  /// Rows of the bias: 0, 1, or 2.
  std::int64_t bias_rows() const;
  std::size_t element() const noexcept { return dtype_size(spec_->dtype); }
  const ParamsLayout& layout() const noexcept { return layout_; }

  /// Packed from what is in `weights` now: what was packed last if it was the same.
  std::shared_ptr<const PackedParams> packed(const Both<Weights>& weights,
                                             const PackOptions& options);
  /// A gradient in the opaque layout as Keras's arrays.
  void split(const void* params, const Both<WeightGradients>& to) const;
  /// How often weights were packed.
  std::uint64_t packings() const;

 private:
  std::uint64_t hash_of(const Both<Weights>& weights) const;
  DeviceArray joined(const Both<Weights>& weights) const;

  ValidSpec spec_;
  ParamsLayout layout_;
  const Engine* engine_;
  mutable std::mutex mutex_ = {};
  std::shared_ptr<const PackedParams> packed_ = {};
  std::uint64_t hash_ = 0, packings_ = 0;
};

}  // namespace openrnn::python::keras
