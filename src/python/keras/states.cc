#include "python/keras/states.h"

#include <cstring>

#include "openrnn/runtime.h"

namespace openrnn::python::keras {
namespace {

std::size_t row_bytes(const Cell& cell) {
  return static_cast<std::size_t>(cell.spec().num_units) * cell.element();
}

// Calls visit(bytes from the start of [B, D, U], of [B, U], of a row) for each row of a direction.
template <class Visit>
void each_row(const Cell& cell, std::int64_t batch, std::size_t direction, const Visit& visit) {
  const std::size_t bytes = row_bytes(cell);
  for (std::size_t row = 0; row < static_cast<std::size_t>(batch); ++row) {
    visit((row * cell.directions() + direction) * bytes, row * bytes, bytes);
  }
}

Shape shape_of(const Cell& cell, std::int64_t batch) {
  return {batch, static_cast<std::int64_t>(cell.directions()), cell.spec().num_units};
}

}  // namespace

DeviceArray scratch(const Cell& cell, Shape shape) {
  return {device("cpu"), cell.spec().dtype, std::move(shape)};
}

const void* join_states(const Cell& cell, std::int64_t batch, const Both<const void*>& states,
                        DeviceArray* own) {
  if (cell.directions() == 1) return states[0];
  if (!states[0] && !states[1]) return nullptr;
  *own = scratch(cell, shape_of(cell, batch));
  auto* const to = static_cast<std::byte*>(own->mutable_data());
  for (std::size_t d = 0; d < 2; ++d) {
    const auto* const from = static_cast<const std::byte*>(states[d]);
    each_row(cell, batch, d, [&](std::size_t at, std::size_t row, std::size_t bytes) {
      if (from) {
        std::memcpy(to + at, from + row, bytes);
      } else {
        std::memset(to + at, 0, bytes);
      }
    });
  }
  return to;
}

void* room_for_states(const Cell& cell, std::int64_t batch, const Both<void*>& states,
                      DeviceArray* own) {
  if (cell.directions() == 1) return states[0];
  if (!states[0] && !states[1]) return nullptr;
  *own = scratch(cell, shape_of(cell, batch));
  return own->mutable_data();
}

void split_states(const Cell& cell, std::int64_t batch, const DeviceArray& own,
                  const Both<void*>& states) {
  if (cell.directions() == 1) return;
  for (std::size_t d = 0; d < 2; ++d) {
    if (!states[d]) continue;
    const auto* const from = static_cast<const std::byte*>(own.data());
    auto* const to = static_cast<std::byte*>(states[d]);
    each_row(cell, batch, d, [&](std::size_t at, std::size_t row, std::size_t bytes) {
      std::memcpy(to + row, from + at, bytes);
    });
  }
}

}  // namespace openrnn::python::keras
