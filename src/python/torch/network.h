// A network whose parameters lie in tensors of PyTorch, one for each matrix and pair of biases.
#pragma once

#include "openrnn/engine.h"
#include "python/support/common.h"

namespace openrnn::python::torch {

/// One parameter: regions of the opaque buffer that follow each other.
struct Piece {
  ParamRole role = ParamRole::kInputWeight;
  std::int64_t layer = 0, direction = 0;
  std::int64_t rows = 0, cols = 0;  // cols 0: a vector
  std::int64_t offset = 0;          // elements
  nb::tuple shape = {};

  std::int64_t size() const { return rows * (cols == 0 ? 1 : cols); }
};

/// What a network is, and where its pieces lie in the opaque buffer: in the order of PyTorch's
/// parameters, by layer and direction, of each the matrices of input and state, their biases, the
/// projection, then what PyTorch has not.
struct Network {
  /// `dtype` is PyTorch's object for that of the spec.
  Network(const RnnSpec& network, nb::object torch_dtype);

  ValidSpec spec;
  ParamsLayout layout;
  const Engine* engine;
  std::size_t element;  // bytes
  nb::object dtype;
  std::vector<Piece> pieces;
};

/// One call on memory that PyTorch owns: x and y [T, B, .] or [B, T, .], states [L*D, B, .] in
/// either case, as PyTorch has them. With batch_sizes x and y are the rows of a PackedSequence.
struct Call {
  std::int64_t max_time = 0, batch = 0;
  bool batch_major = false, training = false;
  const std::int64_t* batch_sizes = nullptr;  // [T], none above the one before
  int threads = 0;
  DropoutKey dropout = {};
};

/// Lengths of the rows that a PackedSequence packs.
std::vector<std::int32_t> lengths_of(const Call& call);

}  // namespace openrnn::python::torch
