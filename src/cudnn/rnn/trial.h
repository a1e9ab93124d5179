// Trial of an algorithm: results and time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cudnn/rnn/piece.h"

namespace openrnn::cudnn {

/// Runs a call by several variants. They get only memory of this object, copies of their inputs
/// included: a failing one has not written to the caller's memory.
class Trial {
 public:
  /// Throws: GpuError, as all below.
  Trial(const PieceCall& call, const PieceForward& memory);

  /// What the variant gives: y, hy, cy and, in training, the gradients of x, hx, cx and of the
  /// weights for dy = y, dhy = hy, dcy = cy.
  std::vector<std::vector<double>> results(const Variant& variant);
  /// Whether they equal those of `expected` up to rounding.
  bool agrees(const Variant& variant, const std::vector<std::vector<double>>& expected);
  /// Milliseconds of the fastest of some runs.
  double time(const Variant& variant);

 private:
  void* block(std::int64_t elements);
  void* result(std::int64_t elements);
  const void* copy_of(const void* from, std::int64_t elements);
  std::vector<double> numbers(const void* memory, std::int64_t elements) const;
  double run(const Variant& variant);

  PartWeights weights_;
  PieceCall call_;
  PieceForward memory_;
  PieceBackward gradient_;
  std::vector<std::shared_ptr<void>> blocks_;
  std::vector<std::pair<void*, std::int64_t>> results_;
};

}  // namespace openrnn::cudnn
