// Changes tables of LevelDB and tensor bundles: blocks, their index and all checksums stay right.
#pragma once

#include <map>

#include "base/crc/crc32c.h"
#include "formats/coding.h"
#include "formats/table/table.h"
#include "openrnn/base.h"
#include "proto.h"

namespace openrnn::fuzz {

using TableEntries = std::map<std::string, std::string>;

inline bool parse_table(std::string_view bytes, TableEntries* entries) {
  try {
    formats::read_table(formats::MemorySource("m", bytes), false,
                        [&](std::string_view key, std::string_view value, std::uint64_t) {
                          entries->emplace(key, value);
                        });
  } catch (const Error&) {
    return false;
  }
  return !entries->empty();
}

/// Some values, which are protocol buffers, and keys.
inline void change_entries(TableEntries* entries, Chance& chance) {
  for (std::size_t left = 1 + chance.below(2); left > 0; --left) {
    const auto at =
        std::next(entries->begin(), static_cast<std::ptrdiff_t>(chance.below(entries->size())));
    std::string key = at->first, value = at->second;
    switch (chance.below(8)) {
      case 0:
        if (entries->size() > 1) entries->erase(at);
        break;
      case 1:
        chance.change_bytes(&key);
        (*entries)[key] = value;
        break;
      case 2:
        entries->erase(at);
        chance.change_bytes(&key);
        (*entries)[key] = value;
        break;
      case 3:
        chance.change_bytes(&at->second);
        break;
      default:
        if (!mutate_proto(&at->second, chance)) chance.change_bytes(&at->second);
    }
  }
}

/// Bytes of a block, and its checksum behind them. What the index says is left as it is.
inline bool change_block(std::string* bytes, Chance& chance) {
  if (bytes->size() < formats::kTableFooterBytes) return false;
  const std::size_t footer = bytes->size() - formats::kTableFooterBytes;
  formats::ByteCursor in(std::string_view(*bytes).substr(footer));
  std::uint64_t places[4];
  for (std::uint64_t& place : places) {
    if (!in.varint64(&place)) return false;
  }
  // The index, or the first block, which begins the file and ends where nobody says but the index.
  std::uint64_t offset = places[2], size = places[3];
  if (chance.one_in(2)) offset = 0, size = places[0] >= 5 ? places[0] - 5 : 0;
  if (size == 0 || size > footer || offset > footer - size || footer - size - offset < 5) {
    return false;
  }
  std::string block = bytes->substr(offset, size);
  chance.change_bytes(&block, 0);
  block.resize(size, '\0');
  if (chance.one_in(8)) (*bytes)[offset + size] = static_cast<char>(chance.below(3));
  const std::string covered = block + (*bytes)[offset + size];
  const std::uint32_t crc = mask_crc(crc32c(covered));
  bytes->replace(offset, size, block);
  std::memcpy(bytes->data() + offset + size + 1, &crc, sizeof crc);
  return true;
}

inline bool mutate_table(std::string* bytes, Chance& chance) {
  if (chance.one_in(4)) return change_block(bytes, chance);
  TableEntries entries;
  if (!parse_table(*bytes, &entries)) return false;
  change_entries(&entries, chance);
  constexpr std::size_t kBlockBytes[] = {64, 4096, 262144};
  *bytes = formats::build_table(entries, chance.pick(kBlockBytes));
  return true;
}

/// The checksums of the tensors in the index, of the bytes that it says.
inline void sum_tensors(TableEntries* entries, std::string_view data) {
  constexpr std::uint64_t kOffset = 4 << 3, kSize = 5 << 3, kCrc = 6 << 3 | 5;
  for (auto& [key, value] : *entries) {
    MutableMessage entry;
    if (key.empty() || !parse_fields(value, 4, &entry)) continue;
    std::uint64_t offset = 0, size = 0;
    for (const MutableField& field : entry) {
      if (field.key == kOffset) offset = field.value;
      if (field.key == kSize) size = field.value;
    }
    if (offset > data.size() || size > data.size() - offset) continue;
    const std::uint32_t crc = mask_crc(crc32c(data.substr(offset, size)));
    for (MutableField& field : entry) {
      if (field.key == kCrc) std::memcpy(field.bytes.data(), &crc, sizeof crc);
    }
    value = write_fields(entry);
  }
}

/// The length of the index in 4 bytes, the index, then the only data file.
inline bool mutate_bundle(std::string* bytes, Chance& chance) {
  formats::ByteCursor in(*bytes);
  std::uint32_t size = 0;
  std::string_view part;
  if (!in.fixed(&size) || !in.bytes(size, &part)) return false;
  std::string index(part);
  in.bytes(in.remaining(), &part);
  std::string data(part);
  TableEntries entries;
  if (chance.one_in(6) || !parse_table(index, &entries)) {
    if (!mutate_table(&index, chance)) return false;
  } else {
    if (chance.one_in(3)) {
      chance.change_bytes(&data);
    } else {
      change_entries(&entries, chance);
    }
    sum_tensors(&entries, data);
    index = formats::build_table(entries);
  }
  bytes->clear();
  formats::put_fixed(bytes, static_cast<std::uint32_t>(index.size()));
  *bytes += index + data;
  return true;
}

/// A table, or a graph, which is a message.
inline bool mutate_tf_file(std::string* bytes, Chance& chance) {
  return mutate_table(bytes, chance) || mutate_proto(bytes, chance);
}

}  // namespace openrnn::fuzz
