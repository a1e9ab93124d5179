// Changes arrays of NumPy, WAVE files and event files: the sizes and checksums in front of and
// behind what is changed stay right.
#pragma once

#include <optional>

#include "base/crc/crc32c.h"
#include "formats/coding.h"
#include "json.h"
#include "proto.h"

namespace openrnn::fuzz {

/// The header is changed, and the elements are made as many as it says; or the elements are.
inline bool mutate_npy(std::string* bytes, Chance& chance) {
  constexpr std::size_t kPrefix = 10;
  if (!bytes->starts_with("\x93NUMPY") || bytes->size() < kPrefix + 2) return false;
  const bool is_short = (*bytes)[6] == 1;
  const std::size_t start = is_short ? kPrefix : kPrefix + 2;
  std::uint32_t size = 0;
  std::memcpy(&size, bytes->data() + 8, is_short ? 2 : 4);
  if (size > bytes->size() - start) return false;
  std::string header = bytes->substr(start, size), elements = bytes->substr(start + size);
  if (chance.one_in(3)) {
    chance.change_bytes(&elements);
  } else if (chance.one_in(2)) {
    mutate_json(&header, chance);
  } else {
    constexpr struct {
      const char* code;
      std::size_t bytes;
    } kTypes[] = {{"<f2", 2}, {"<f4", 4}, {"<f8", 8}, {"<i4", 4}, {"<i8", 8},
                  {"|u1", 1}, {"|b1", 1}, {">f4", 4}, {"|O", 8},  {"<c8", 8}};
    const auto& type = chance.pick(kTypes);
    std::string shape;
    std::size_t count = type.bytes;
    for (std::size_t rank = chance.below(4); rank > 0; --rank) {
      const std::size_t dimension = chance.below(6);
      shape += std::to_string(dimension) + ",";
      count *= dimension;
    }
    header = std::string("{'descr': '") + type.code +
             "', 'fortran_order': " + (chance.one_in(2) ? "True" : "False") + ", 'shape': (" +
             shape + "), }\n";
    elements.resize(count);
  }
  const std::uint64_t length = header.size();
  bytes->resize(start);
  std::memcpy(bytes->data() + 8, &length, is_short ? 2 : 4);
  *bytes += header + elements;
  return true;
}

struct WavChunk {
  std::string name, body;
};

inline bool mutate_wav(std::string* bytes, Chance& chance) {
  constexpr std::size_t kHead = 12;
  if (!bytes->starts_with("RIFF") || bytes->size() < kHead) return false;
  std::vector<WavChunk> chunks;
  formats::ByteCursor in(std::string_view(*bytes).substr(kHead));
  std::string_view name, body;
  std::uint32_t size = 0;
  while (in.bytes(4, &name) && in.fixed(&size) && in.bytes(size, &body)) {
    chunks.push_back({std::string(name), std::string(body)});
    if (size % 2) in.bytes(1, &body);
  }
  if (chunks.empty()) return false;
  WavChunk& chunk = chance.pick(chunks);
  switch (chance.below(6)) {
    case 0:
      std::swap(chunk, chance.pick(chunks));
      break;
    case 1:
      chunks.push_back(WavChunk(chunk));
      break;
    case 2:
      chance.change_bytes(&chunk.name, 0);
      chunk.name.resize(4, ' ');
      break;
    default:
      if (chunk.name == "fmt " && chunk.body.size() >= 16 && chance.one_in(2)) {
        constexpr std::uint16_t kBits[] = {8, 16, 24, 32, 64}, kCodings[] = {1, 3, 0xfffe};
        std::memcpy(chunk.body.data(), &chance.pick(kCodings), 2);
        std::memcpy(chunk.body.data() + 14, &chance.pick(kBits), 2);
      } else {
        chance.change_bytes(&chunk.body);
      }
  }
  std::string out = bytes->substr(0, kHead);
  for (const WavChunk& one : chunks) {
    out += one.name;
    formats::put_fixed(&out, static_cast<std::uint32_t>(one.body.size()));
    out += one.body;
    if (one.body.size() % 2) out += '\0';
  }
  *bytes = out;
  return true;
}

/// Records of TensorBoard's files, each a protocol buffer with two checksums.
inline bool mutate_events(std::string* bytes, Chance& chance) {
  std::vector<std::string> records;
  formats::ByteCursor in(*bytes);
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::string_view record;
  while (in.fixed(&size) && in.fixed(&crc) && in.bytes(size, &record) && in.fixed(&crc)) {
    records.emplace_back(record);
  }
  if (records.empty()) return false;
  std::string& one = chance.pick(records);
  switch (chance.below(6)) {
    case 0:
      std::swap(one, chance.pick(records));
      break;
    case 1:
      records.push_back(std::string(one));
      break;
    case 2:
      chance.change_bytes(&one);
      break;
    default:
      if (!mutate_proto(&one, chance)) chance.change_bytes(&one);
  }
  bytes->clear();
  for (const std::string& data : records) {
    std::string length;
    formats::put_fixed(&length, std::uint64_t{data.size()});
    *bytes += length;
    formats::put_fixed(bytes, mask_crc(crc32c(length)));
    *bytes += data;
    formats::put_fixed(bytes, mask_crc(crc32c(data)));
  }
  return true;
}

}  // namespace openrnn::fuzz
