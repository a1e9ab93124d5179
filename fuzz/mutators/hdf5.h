// Changes HDF5 files by the fields of their structures, and sets right the checksums.
#pragma once

#include <vector>

#include "formats/hdf5/structure/lookup3.h"
#include "json.h"

namespace openrnn::fuzz {

/// Whether a structure may begin with it: most bytes are passed over by that alone.
inline bool may_begin_hdf5_structure(char first) {
  return std::string_view("\x89OTSHGFB").find(first) != std::string_view::npos;
}

/// Bytes of a structure of newer files up to its checksum; 0 for none. Nodes of trees, whose size
/// is in their header, are taken as `node` bytes.
inline std::size_t hdf5_covered_bytes(std::string_view at, std::size_t node) {
  const auto byte = [&](std::size_t i) {
    return i < at.size() ? static_cast<unsigned char>(at[i]) : std::size_t{0};
  };
  if (at.starts_with("\x89HDF\r\n\x1a\n") && byte(8) >= 2) return 44;
  if (at.starts_with("FRHP")) return 142;
  if (at.starts_with("BTHD")) return 34;
  if (at.starts_with("FAHD")) return 24;
  if ((at.starts_with("BTLF") || at.starts_with("BTIN")) && node > 4) return node - 4;
  if (!at.starts_with("OHDR")) return 0;
  const std::size_t flags = byte(5), size_bytes = std::size_t{1} << (flags & 3u);
  const std::size_t head = 6 + (flags & 0x20u ? 16 : 0) + (flags & 0x10u ? 4 : 0);
  std::size_t size = 0;
  for (std::size_t i = 0; i < size_bytes && i < 4; ++i) size |= byte(head + i) << (8 * i);
  return head + size_bytes + size;
}

inline void set_hdf5_checksums(std::string* bytes) {
  std::size_t node = 0;
  for (std::size_t at = 0; at + 8 < bytes->size(); ++at) {
    if (!may_begin_hdf5_structure((*bytes)[at])) continue;
    const std::string_view here = std::string_view(*bytes).substr(at);
    if (here.starts_with("BTHD") && here.size() >= 10) {
      std::uint32_t size = 0;
      std::memcpy(&size, here.data() + 6, sizeof size);
      node = size;
    }
    const std::size_t covered = hdf5_covered_bytes(here, node);
    if (covered == 0 || covered > here.size() || here.size() - covered < 4) continue;
    const std::uint32_t sum = formats::lookup3(here.substr(0, covered));
    std::memcpy(bytes->data() + at + covered, &sum, sizeof sum);
  }
}

/// Where structures begin: those with a signature.
inline std::vector<std::size_t> hdf5_structures(std::string_view bytes) {
  constexpr std::string_view kSignatures[] = {"\x89HDF", "OHDR", "OCHK", "TREE", "SNOD",
                                              "HEAP",    "GCOL", "FRHP", "FHDB", "FHIB",
                                              "BTHD",    "BTLF", "BTIN", "FAHD", "FADB"};
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at + 4 <= bytes.size(); ++at) {
    if (!may_begin_hdf5_structure(bytes[at])) continue;
    for (const std::string_view signature : kSignatures) {
      if (bytes.substr(at, 4) == signature.substr(0, 4)) found.push_back(at);
    }
  }
  return found;
}

/// A field of 1, 2, 4 or 8 bytes somewhere behind a signature, or anywhere at an even place, which
/// headers of objects without a signature are at.
inline void change_hdf5_field(std::string* bytes, Chance& chance) {
  const std::vector<std::size_t> structures = hdf5_structures(*bytes);
  constexpr std::size_t kReach = 160;
  const std::size_t width = std::size_t{1} << chance.below(4);
  std::size_t at = chance.below(bytes->size()) / 2 * 2;
  if (!structures.empty() && chance.one_in(2)) {
    const std::size_t start = chance.pick(structures) + 4;
    at = start + chance.below(kReach);
  }
  if (at > bytes->size() || bytes->size() - at < width) return;
  std::uint64_t value = 0;
  std::memcpy(&value, bytes->data() + at, width);
  if (!structures.empty() && width == 8 && chance.one_in(3)) {
    value = chance.pick(structures);
  } else {
    value = chance.number(value);
  }
  std::memcpy(bytes->data() + at, &value, width);
}

/// A configuration as JSON, which keeps its length.
inline bool change_hdf5_json(std::string* bytes, Chance& chance) {
  std::vector<std::size_t> starts;
  for (std::size_t at = bytes->find("{\""); at != std::string::npos;
       at = bytes->find("{\"", at + 1)) {
    starts.push_back(at);
  }
  if (starts.empty()) return false;
  const std::size_t at = starts[chance.one_in(2) ? 0 : chance.below(starts.size())];
  std::size_t end = at, depth = 0;
  for (; end < bytes->size() && (*bytes)[end] != '\0'; ++end) {
    if ((*bytes)[end] == '{') ++depth;
    if ((*bytes)[end] == '}' && --depth == 0) break;
  }
  if (end >= bytes->size() || (*bytes)[end] != '}') return false;
  const std::size_t size = end + 1 - at;
  for (int tries = 0; tries < 4; ++tries) {
    std::string text = bytes->substr(at, size);
    mutate_json(&text, chance);
    if (text.size() > size) continue;
    text.resize(size, ' ');
    bytes->replace(at, size, text);
    return true;
  }
  return false;
}

inline bool mutate_hdf5(std::string* bytes, Chance& chance) {
  if (!bytes->starts_with("\x89HDF")) return false;
  if (!chance.one_in(4) || !change_hdf5_json(bytes, chance)) {
    for (std::size_t left = 1 + chance.below(3); left > 0; --left) {
      if (chance.one_in(4)) {
        chance.change_bytes(bytes, 0);
      } else {
        change_hdf5_field(bytes, chance);
      }
    }
  }
  set_hdf5_checksums(bytes);
  return true;
}

}  // namespace openrnn::fuzz
