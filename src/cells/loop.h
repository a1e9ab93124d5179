// One loop of a cell over time, which the public loops are made of.
#pragma once

#include <string_view>

#include "openrnn/cells.h"

namespace openrnn::cells {

using LengthValues = std::optional<std::vector<std::int32_t>>;

// Known, or a symbolic tensor.
struct Lengths {
  LengthValues values = {};
  Tensor symbolic = {};
};

// The initial state of a loop: as given, or zeros of a dtype.
struct Start {
  std::optional<CellState> given;
  DType dtype = DType::kFloat32;

  CellState state(const RnnCell& cell, std::int64_t batch) const {
    return given ? *given : cell.zero_state(batch, dtype);
  }
};

// Time-major, where the cell computes. Throws: ArgumentError for another rank than 3.
Tensor placed_inputs(std::string_view call, const RnnCell& cell, const Tensor& inputs,
                     bool time_major);
// Throws: ArgumentError for another number of lengths than there are rows, or one outside 0..T.
void check_lengths(std::string_view call, const LengthValues& lengths, const Shape& time_major);
// Throws: ArgumentError when there is neither.
Start make_start(std::string_view call, const std::optional<CellState>& given,
                 std::optional<DType> dtype);

// Those of a call's options. Throws: as check_lengths.
template <class Options>
Lengths lengths_in(std::string_view call, const Options& options, const Shape& time_major) {
  if (options.lengths.is_symbolic()) return {.symbolic = options.lengths};
  const Lengths lengths{options.lengths.empty() ? options.sequence_lengths
                                                : ops::lengths_of(call, options.lengths)};
  check_lengths(call, lengths.values, time_major);
  return lengths;
}

// Throws: ArgumentError for another number of tensors or another shape than the cell's state has.
void check_state(std::string_view call, const RnnCell& cell, std::int64_t batch,
                 const CellState& state);

// x [T, B, I]; the cell's variables are made in the current scope. A symbolic loop is recorded.
DynamicRnnResult run_cell(std::string_view call, RnnCell& cell, const Tensor& x, const Start& start,
                          const Lengths& lengths);

}  // namespace openrnn::cells
