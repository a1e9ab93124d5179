// The array of bytes that forward hands to backward.
#pragma once

#include <cstring>

#include "openrnn/engine.h"
#include "python/jax/frame.h"

namespace openrnn::python::jax {

/// What a reserve begins with: what it is of. One cache line, so that the rest is aligned, too.
struct alignas(64) ReserveHead {
  std::uint64_t mark = 0, content = 0;
  std::int64_t max_time = 0, batch = 0;

  friend bool operator==(const ReserveHead&, const ReserveHead&) = default;
};

/// A reserve at an address that engines can have: the runtime's own, or memory beside it.
class AlignedReserve {
 public:
  AlignedReserve(const void* reserve, std::size_t bytes) : bytes_(bytes) {
    // Only write() writes, of those whose memory may be written.
    auto* const given = static_cast<std::byte*>(const_cast<void*>(reserve));  // NOLINT
    const auto address = reinterpret_cast<std::uintptr_t>(reserve);           // NOLINT
    if (address % kReserveAlignment != 0) own_ = AlignedBuffer(bytes);
    given_ = given;
  }
  /// Reads what forward has written there.
  void read() {
    if (own_.size() != 0) std::memcpy(own_.data(), given_, bytes_);
  }
  /// Writes what was put at data() to where it belongs.
  void write() {
    if (own_.size() != 0) std::memcpy(given_, own_.data(), bytes_);
  }
  ReserveHead head() const {
    ReserveHead head;
    std::memcpy(&head, given_, sizeof head);
    return head;
  }
  void set_head(const ReserveHead& head) { std::memcpy(data(), &head, sizeof head); }
  std::byte* data() { return own_.size() != 0 ? static_cast<std::byte*>(own_.data()) : given_; }
  /// What is the engine's.
  std::byte* body() { return data() + sizeof(ReserveHead); }

 private:
  std::size_t bytes_;
  std::byte* given_ = nullptr;
  AlignedBuffer own_;
};

/// Bytes of a whole reserve with those of an engine in it; 0 where the engine cannot lay them into
/// memory that is not its own, and backward runs forward again.
std::int64_t whole_reserve(std::optional<std::int64_t> engines);
/// The bytes at `place` that forward is asked to write, 0 or more.
std::int64_t reserve_room(const Frame& frame, std::int64_t place);
/// What forward writes at `place`: `bytes` of a whole reserve, the head already. Throws:
/// ArgumentError where there are fewer, or `bytes` is 0.
AlignedReserve new_reserve(const Frame& frame, std::int64_t place, std::int64_t bytes,
                           const ReserveHead& head);
/// The operand at `place`, read, if it is of the call that `head` is of. Others come where somebody
/// took a gradient's function apart.
std::optional<AlignedReserve> kept_reserve(const Frame& frame, std::int64_t place,
                                           std::int64_t bytes, const ReserveHead& head);

}  // namespace openrnn::python::jax
