#include "python/torch/places.h"

#include <algorithm>
#include <cstring>

#include "openrnn/runtime.h"

namespace openrnn::python::torch {
namespace {

const Device& host() {
  static const Device& cpu = device("cpu");
  return cpu;
}

std::byte* bytes(void* data) { return static_cast<std::byte*>(data); }

}  // namespace

Sequence::Sequence(const Network& network, const Call& call, void* data, std::int64_t width)
    : call_(&call), data_(data), row_(static_cast<std::size_t>(width) * network.element) {
  if (!data || !call.batch_sizes) return;
  padded_ = DeviceArray(host(), network.spec->dtype, {call.max_time, call.batch, width});
}

template <class Copy>
void Sequence::each_step(const Copy& copy) {
  std::byte* packed = bytes(data_);
  std::byte* padded = bytes(padded_.mutable_data());
  for (std::int64_t t = 0; t < call_->max_time; ++t) {
    const std::size_t size = static_cast<std::size_t>(call_->batch_sizes[t]) * row_;
    copy(packed, padded, size);
    packed += size;
    padded += static_cast<std::size_t>(call_->batch) * row_;
  }
}

Sequence Sequence::input(const Network& network, const Call& call, const void* data,
                         std::int64_t width) {
  Sequence sequence(network, call, const_cast<void*>(data), width);
  if (sequence.padded_.empty()) return sequence;
  sequence.each_step([](const std::byte* packed, std::byte* padded, std::size_t size) {
    std::copy_n(packed, size, padded);
  });
  return sequence;
}

Sequence Sequence::output(const Network& network, const Call& call, void* data,
                          std::int64_t width) {
  return {network, call, data, width};
}

void Sequence::finish() {
  if (padded_.empty()) return;
  each_step([](std::byte* packed, const std::byte* padded, std::size_t size) {
    std::copy_n(padded, size, packed);
  });
}

State::State(const Network& network, const Call& call, void* data, std::int64_t width)
    : data_(data),
      layers_(static_cast<std::size_t>(network.spec->num_pseudo_layers())),
      batch_(static_cast<std::size_t>(call.batch)),
      row_(static_cast<std::size_t>(width) * network.element) {
  if (!data || !call.batch_major || layers_ <= 1 || batch_ <= 1) return;
  moved_ = DeviceArray(host(), network.spec->dtype,
                       {call.batch, network.spec->num_pseudo_layers(), width});
}

State State::input(const Network& network, const Call& call, const void* data, std::int64_t width) {
  State state(network, call, const_cast<void*>(data), width);
  if (state.moved_.empty()) return state;
  std::byte* const to = bytes(state.moved_.mutable_data());
  const std::byte* from = bytes(state.data_);
  for (std::size_t l = 0; l < state.layers_; ++l) {
    for (std::size_t b = 0; b < state.batch_; ++b, from += state.row_) {
      std::memcpy(to + (b * state.layers_ + l) * state.row_, from, state.row_);
    }
  }
  return state;
}

State State::output(const Network& network, const Call& call, void* data, std::int64_t width) {
  return {network, call, data, width};
}

void State::finish() {
  if (moved_.empty()) return;
  const std::byte* from = bytes(moved_.mutable_data());
  std::byte* const to = bytes(data_);
  for (std::size_t b = 0; b < batch_; ++b) {
    for (std::size_t l = 0; l < layers_; ++l, from += row_) {
      std::memcpy(to + (l * batch_ + b) * row_, from, row_);
    }
  }
}

}  // namespace openrnn::python::torch
