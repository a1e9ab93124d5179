#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/message.h"
#include "openrnn/device.h"
#include "openrnn/runtime.h"
#include "runtime/limits.h"

namespace openrnn {
namespace {

StreamId id_of(std::size_t slot, std::uint32_t generation) {
  return StreamId{(std::uint64_t{generation} << 32) | slot};
}

// Slots are counted in 32 bits.
void check_limits(const StreamLimits& limits) {
  const auto fits = [](std::int64_t size, std::int64_t least) {
    return size >= least && size <= std::numeric_limits<std::int32_t>::max();
  };
  if (fits(limits.streams, 1) && fits(limits.batch, 0) && fits(limits.time, 1) &&
      limits.threads >= 0) {
    return;
  }
  throw ArgumentError(message("[StreamPool] limits are ", limits.streams, " streams, batch ",
                              limits.batch, ", time ", limits.time, " and ", limits.threads,
                              " threads",
                              ", expected at least 1, 0, 1 and 0, and fewer than 2^31"));
}

/// The states of one step as the engine takes them.
struct StepRows {
  std::span<const std::uint32_t> slots;
  bool rows_first;  // [B, L*D, .], else [L*D, B, .]
};

/// Calls `copy(pool offset, batch offset, bytes)` for every piece of the states [streams, L*D, .].
template <class Copy>
void for_pieces(const Array& pool, const StepRows& rows, Copy copy) {
  const auto planes = static_cast<std::size_t>(pool.shape()[1]);
  const std::size_t width = static_cast<std::size_t>(pool.shape()[2]) * dtype_size(pool.dtype());
  for (std::size_t b = 0; b < rows.slots.size(); ++b) {
    const std::size_t at = rows.slots[b] * planes * width;
    if (rows.rows_first) {
      copy(at, b * planes * width, planes * width);
      continue;
    }
    for (std::size_t p = 0; p < planes; ++p) {
      copy(at + p * width, (p * rows.slots.size() + b) * width, width);
    }
  }
}

void gather(const Array& pool, const StepRows& rows, Array& batch) {
  for_pieces(pool, rows, [&](std::size_t from, std::size_t to, std::size_t bytes) {
    std::memcpy(static_cast<char*>(batch.data()) + to, static_cast<const char*>(pool.data()) + from,
                bytes);
  });
}

void scatter(const Array& batch, const StepRows& rows, Array& pool) {
  for_pieces(pool, rows, [&](std::size_t to, std::size_t from, std::size_t bytes) {
    std::memcpy(static_cast<char*>(pool.data()) + to, static_cast<const char*>(batch.data()) + from,
                bytes);
  });
}

/// Where the state of a slot lies, and its size.
std::pair<std::size_t, std::size_t> place_of(const Array& pool, std::size_t slot) {
  const std::size_t bytes =
      static_cast<std::size_t>(pool.shape()[1] * pool.shape()[2]) * dtype_size(pool.dtype());
  return {slot * bytes, bytes};
}

void set_state(Array& pool, std::size_t slot, const void* state) {
  const auto [at, bytes] = place_of(pool, slot);
  char* const to = static_cast<char*>(pool.data()) + at;
  if (state) {
    std::memcpy(to, state, bytes);
  } else {
    std::memset(to, 0, bytes);
  }
}

}  // namespace

StreamPool::StreamPool(std::shared_ptr<const PackedModel> model, const StreamLimits& limits)
    : model_(std::move(model)), limits_(limits) {
  if (!model_) throw ArgumentError("[StreamPool] model is null, expected a PackedModel");
  if (const Device* const device = model_->engine().device()) {
    throw ArgumentError(message("[StreamPool] the model is on ", device->name(),
                                ", expected one on the cpu, where the states lie"));
  }
  check_limits(limits_);
  if (limits_.batch == 0 || limits_.batch > limits_.streams) limits_.batch = limits_.streams;
  const RnnSpec& spec = model_->spec();
  const std::int64_t planes = spec.num_pseudo_layers();
  const auto states = [&](std::int64_t rows, std::int64_t width) {
    return Array(spec.dtype, {rows, planes, width});
  };
  h_ = states(limits_.streams, spec.hidden_size());
  batch_h_ = states(limits_.batch, spec.hidden_size());
  if (spec.has_cell()) {
    c_ = states(limits_.streams, spec.num_units);
    batch_c_ = states(limits_.batch, spec.num_units);
  }
  limits_.threads = fewer_threads(limits_.threads, model_->options().max_threads);
  workspace_ = model_->engine().make_workspace(model_->packed(),
                                               {limits_.batch, limits_.time, limits_.threads});
  const auto streams = static_cast<std::size_t>(limits_.streams);
  free_.resize(streams);
  // The first slot is taken first.
  std::iota(free_.rbegin(), free_.rend(), 0U);
  free_count_ = limits_.streams;
  generations_.resize(streams);
  named_.resize(streams);
  slots_.resize(static_cast<std::size_t>(limits_.batch));
}

bool StreamPool::contains(StreamId id) const noexcept {
  const auto bits = static_cast<std::uint64_t>(id);
  const std::uint64_t slot = bits & 0xFFFFFFFFU, generation = bits >> 32;
  return slot < generations_.size() && generations_[slot] == generation && generation % 2 == 1;
}

std::size_t StreamPool::slot_of(std::string_view call, StreamId id) const {
  const auto bits = static_cast<std::uint64_t>(id);
  if (contains(id)) return bits & 0xFFFFFFFFU;
  throw ArgumentError(message("[", call, "] stream ", bits, " is not open, expected one of the ",
                              size(), " that joined and have not left"));
}

void StreamPool::check_cell(std::string_view call, const void* c) const {
  if (c && !model_->spec().has_cell()) {
    throw ArgumentError(
        message("[", call, "] c is given, expected null for ", to_string(model_->spec().mode)));
  }
}

void StreamPool::fill(std::size_t slot, const void* h, const void* c) {
  set_state(h_, slot, h);
  if (model_->spec().has_cell()) set_state(c_, slot, c);
}

StreamId StreamPool::join(const void* h, const void* c) {
  check_cell("join", c);
  if (free_count_ == 0) {
    throw StateError(message("[join] ", size(), " streams are open, expected fewer than ",
                             limits_.streams, ", the pool's limit"));
  }
  const std::size_t slot = free_[static_cast<std::size_t>(--free_count_)];
  fill(slot, h, c);
  return id_of(slot, ++generations_[slot]);
}

void StreamPool::leave(StreamId id) {
  const std::size_t slot = slot_of("leave", id);
  ++generations_[slot];
  free_[static_cast<std::size_t>(free_count_++)] = static_cast<std::uint32_t>(slot);
}

void StreamPool::reset(StreamId id, const void* h, const void* c) {
  check_cell("reset", c);
  fill(slot_of("reset", id), h, c);
}

void StreamPool::read(StreamId id, void* h, void* c) const {
  check_cell("read", c);
  const std::size_t slot = slot_of("read", id);
  const auto copy_out = [slot](const Array& pool, void* to) {
    const auto [at, bytes] = place_of(pool, slot);
    if (to) std::memcpy(to, static_cast<const char*>(pool.data()) + at, bytes);
  };
  copy_out(h_, h);
  if (c) copy_out(c_, c);
}

void StreamPool::find_slots(const StreamStep& step) {
  for (std::size_t i = 0; i < step.ids.size(); ++i) {
    const auto bits = static_cast<std::uint64_t>(step.ids[i]);
    if (!contains(step.ids[i])) {
      throw ArgumentError(message("[step] ids[", i, "] is stream ", bits,
                                  ", which is not open, expected one of the ", size(),
                                  " that joined and have not left"));
    }
    const auto slot = static_cast<std::uint32_t>(bits);
    const std::uint32_t before = named_[slot];
    if (before < i && slots_[before] == slot) {
      throw ArgumentError(message("[step] ids[", before, "] and ids[", i, "] are both stream ",
                                  bits, ", expected each stream once"));
    }
    named_[slot] = static_cast<std::uint32_t>(i);
    slots_[i] = slot;
  }
}

void StreamPool::step(const StreamStep& step) {
  const auto batch = static_cast<std::int64_t>(step.ids.size());
  if (batch > limits_.batch || step.max_time > limits_.time) {
    throw ArgumentError(message("[step] ids has ", batch, " streams and max_time is ",
                                step.max_time, ", expected at most ", limits_.batch, " and ",
                                limits_.time, ", the pool's limits"));
  }
  const bool lstm = model_->spec().has_cell();
  ForwardArgs args;
  args.params = model_->packed();
  args.max_time = step.max_time;
  args.batch = batch;
  // One time step has the same layout either way, and rows are gathered as they are.
  args.time_major = step.time_major && step.max_time != 1;
  args.sequence_lengths = step.sequence_lengths;
  args.max_threads = limits_.threads;
  args.x = step.x;
  args.y = step.y;
  args.h0 = args.hn = batch_h_.data();
  if (lstm) args.c0 = args.cn = batch_c_.data();
  check_forward("step", args);
  find_slots(step);
  const StepRows rows{{slots_.data(), step.ids.size()}, !args.time_major};
  gather(h_, rows, batch_h_);
  if (lstm) gather(c_, rows, batch_c_);
  model_->engine().forward(args, workspace_.get());
  scatter(batch_h_, rows, h_);
  if (lstm) scatter(batch_c_, rows, c_);
}

}  // namespace openrnn
