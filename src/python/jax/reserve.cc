#include "python/jax/reserve.h"

#include "base/message.h"

namespace openrnn::python::jax {

std::int64_t whole_reserve(std::optional<std::int64_t> engines) {
  return engines ? *engines + static_cast<std::int64_t>(sizeof(ReserveHead)) : 0;
}

std::int64_t reserve_room(const Frame& frame, std::int64_t place) {
  const std::int64_t room = frame.result_dims(place, "reserve", 1)[0];
  frame.result(place, "reserve", ElementType::kUInt8, {room});
  return room;
}

AlignedReserve new_reserve(const Frame& frame, std::int64_t place, std::int64_t bytes,
                           const ReserveHead& head) {
  const std::int64_t room = reserve_room(frame, place);
  if (bytes == 0 || room < bytes) {
    throw ArgumentError(message("[", frame.call(), "] reserve is uint8 [", room,
                                "], expected uint8 [", bytes, "]", bytes == 0 ? "" : " or more"));
  }
  AlignedReserve made(frame.result(place, "reserve", ElementType::kUInt8, {room}),
                      static_cast<std::size_t>(bytes));
  made.set_head(head);
  return made;
}

std::optional<AlignedReserve> kept_reserve(const Frame& frame, std::int64_t place,
                                           std::int64_t bytes, const ReserveHead& head) {
  const std::int64_t room = frame.dims(place, "reserve", 1)[0];
  const void* const given = frame.operand(place, "reserve", ElementType::kUInt8, {room});
  if (bytes == 0 || room < bytes) return std::nullopt;
  AlignedReserve kept(given, static_cast<std::size_t>(bytes));
  if (kept.head() != head) return std::nullopt;
  kept.read();
  return kept;
}

}  // namespace openrnn::python::jax
