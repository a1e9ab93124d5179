// What a pickle says, as nodes: plain values, and calls of known names that nobody makes.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torch/names.h"

namespace openrnn::formats {

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,  // beyond 64 bits: its bytes, least first
  kFloat,
  kString,
  kBytes,
  kList,        // also tuples and sets
  kDict,        // keys and values alternate
  kName,        // of the table of names
  kCall,        // of a name (first) with arguments (second, a list)
  kObject,      // of a TorchScript class; its state (first) once it has one
  kPersistent,  // what the file keeps outside of the pickle, by its description (first)
};

using PickleId = std::uint32_t;
inline constexpr PickleId kNoNode = 0xffffffffu;

struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  /// Where it is in the pickle, for messages.
  std::uint32_t at = 0;
  /// An integer, the bits of a double, or two halves.
  std::uint64_t bits = 0;

  std::int64_t integer() const { return static_cast<std::int64_t>(bits); }
  double real() const { return std::bit_cast<double>(bits); }
  /// Of text: where it begins in the pickle; of a list: its first cell.
  std::uint32_t first() const { return static_cast<std::uint32_t>(bits); }
  /// Of text: its bytes; of a list: its last cell.
  std::uint32_t second() const { return static_cast<std::uint32_t>(bits >> 32); }
  void set(std::uint32_t first, std::uint32_t second) {
    bits = first | std::uint64_t{second} << 32;
  }
};

/// A list's items are a chain of cells: lists grow while others are made.
struct PickleCell {
  PickleId value = kNoNode;
  std::uint32_t next = kNoNode;
};

/// The nodes of one pickle. Its memory is at most some 30 times that of the bytes, which are kept
/// alive by the caller. Lists may contain themselves.
struct Pickle {
  std::string path;
  /// Of the pickle in the file.
  std::uint64_t offset = 0;
  std::string_view bytes;
  std::deque<PickleNode> nodes;
  std::deque<PickleCell> cells;
  std::vector<TorchName> names;
  PickleId root = kNoNode;

  const PickleNode& node(PickleId id) const { return nodes[id]; }
  std::string_view text(const PickleNode& node) const {
    return bytes.substr(node.first(), node.second());
  }
  const TorchName& name(const PickleNode& node) const { return names[node.first()]; }
  /// Calls `visit` with the id of each item; the callee returns whether to go on.
  template <class Visit>
  void each_item(const PickleNode& list, const Visit& visit) const {
    for (std::uint32_t at = list.first(); at != kNoNode; at = cells[at].next) {
      if (!visit(cells[at].value)) return;
    }
  }
  /// At most `most` of the items.
  std::vector<PickleId> items(const PickleNode& list, std::size_t most) const;
  /// Throws: FormatError at the place of the node.
  [[noreturn]] void fail(std::uint32_t at, const std::string& what) const;
};

/// The pickle at the start of the bytes, which end with it: `bytes` of the result is all of it.
/// Nothing if it does not end inside them. Executes nothing; refuses every opcode and every name
/// that tensors and plain containers do not need. Throws: FormatError.
std::optional<Pickle> parse_pickle(const std::string& path, std::uint64_t offset,
                                   std::string_view bytes);

}  // namespace openrnn::formats
