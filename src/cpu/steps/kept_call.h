// What every forward call keeps of its own arguments, for whoever comes back to it.
#pragma once

#include <vector>

#include "cpu/pack/packed.h"
#include "cpu/steps/rows.h"

namespace openrnn::cpu {

/// x and the initial states, as places in one block of memory.
template <class T>
struct InputPlaces {
  Grid<T> x;       // [T][B]
  Grid<T> h0, c0;  // [L*D][B]; base null: zeros

  void carve_inputs(Carver& carver, const RnnSpec& s, const ForwardArgs& args) {
    const std::int64_t batch = args.batch, states = s.num_pseudo_layers() * batch;
    const auto grid = [&](std::int64_t count, std::int64_t width) {
      return Grid<T>{carver.take<T>(count * width), batch * width, width};
    };
    x = grid(args.max_time * batch, s.input_size);
    if (args.h0) h0 = grid(states, s.hidden_size());
    if (args.c0 && s.has_cell()) c0 = grid(states, s.num_units);
  }
};

/// Owns the memory of `Places`, unless the caller's reserve is that, and what was given beside
/// arrays; nothing writes into it after the call.
template <class T, class Places>
struct KeptCall : public SavedForward, public Places {
  /// `given` is the caller's call, of which shapes, lengths and keys are kept.
  KeptCall(std::shared_ptr<const CpuPacked<T>> weights, const ForwardArgs& given)
      : packed(std::move(weights)), args(given) {
    if (given.sequence_lengths) {
      lengths.assign(given.sequence_lengths, given.sequence_lengths + given.batch);
      args.sequence_lengths = lengths.data();
    }
    Carver measure;
    this->carve(measure, packed->spec(), args);
    if (!args.reserve) memory_ = Block(measure.used());
    Carver carver(args.reserve ? args.reserve : memory_.data());
    this->carve(carver, packed->spec(), args);
  }

  /// No later call reads or writes the caller's arrays.
  void forget_arrays() {
    args.x = args.h0 = args.c0 = nullptr;
    args.y = args.hn = args.cn = nullptr;
    args.layer_outputs = args.layer_cells = nullptr;
  }

  std::shared_ptr<const CpuPacked<T>> packed;
  ForwardArgs args;
  std::vector<std::int32_t> lengths;

 private:
  Block memory_;
};

}  // namespace openrnn::cpu
