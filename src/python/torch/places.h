// PyTorch's arrangement of sequences and states, as an engine takes them.
#pragma once

#include "openrnn/device.h"
#include "python/torch/network.h"

namespace openrnn::python::torch {

/// A sequence [T, B, width] of PyTorch's, or the rows of a PackedSequence; null is null.
class Sequence {
 public:
  /// To be read. Padding is not set.
  static Sequence input(const Network& network, const Call& call, const void* data,
                        std::int64_t width);
  /// To be written; finish() hands it over.
  static Sequence output(const Network& network, const Call& call, void* data, std::int64_t width);
  const void* data() const { return padded_.empty() ? data_ : padded_.data(); }
  void* mutable_data() { return padded_.empty() ? data_ : padded_.mutable_data(); }
  void finish();

 private:
  Sequence(const Network& network, const Call& call, void* data, std::int64_t width);
  template <class Copy>
  void each_step(const Copy& copy);

  const Call* call_ = nullptr;
  void* data_ = nullptr;
  std::size_t row_ = 0;  // bytes
  DeviceArray padded_;
};

/// A state [L*D, B, width] of PyTorch's, which a batch-major call takes as [B, L*D, width].
class State {
 public:
  static State input(const Network& network, const Call& call, const void* data,
                     std::int64_t width);
  static State output(const Network& network, const Call& call, void* data, std::int64_t width);
  const void* data() const { return moved_.empty() ? data_ : moved_.data(); }
  void* mutable_data() { return moved_.empty() ? data_ : moved_.mutable_data(); }
  void finish();

 private:
  State(const Network& network, const Call& call, void* data, std::int64_t width);

  void* data_ = nullptr;
  std::size_t layers_ = 0, batch_ = 0, row_ = 0;  // row: bytes
  DeviceArray moved_;
};

}  // namespace openrnn::python::torch
