// HDF5 files made by hand, block by block, so that they can say anything.
#pragma once

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/coding.h"
#include "formats/hdf5/structure/lookup3.h"
#include "formats/temp_folder.h"

namespace openrnn::formats::hdf5_text {

inline constexpr std::uint64_t kNone = ~std::uint64_t{0};

/// The lowest `bytes` bytes of a number.
inline std::string le(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) {
    out += static_cast<char>(i < 8 ? value >> (8 * i) & 0xffu : 0);
  }
  return out;
}
inline std::string checked(std::string bytes) {
  const std::uint32_t sum = lookup3(bytes);
  put_fixed(&bytes, sum);
  return bytes;
}
inline std::string zeros(std::size_t count) { return std::string(count, '\0'); }

/// A message of an object header.
struct Text {
  std::uint8_t type = 0;
  std::string bytes;
  std::uint8_t flags = 0;
};

/// Version 2, with these flags.
inline std::string object(const std::vector<Text>& messages, std::uint8_t flags = 2) {
  std::string all;
  for (const Text& one : messages) {
    all += le(one.type, 1) + le(one.bytes.size(), 2) + le(one.flags, 1);
    if (flags & 4u) all += le(7, 2);
    all += one.bytes;
  }
  std::string out = "OHDR" + le(2, 1) + le(flags, 1);
  if (flags & 0x20u) out += std::string(16, '\x5a');
  if (flags & 0x10u) out += std::string(4, '\x5a');
  return checked(out + le(all.size(), std::size_t{1} << (flags & 3u)) + all);
}

inline Text link_info() { return {2, zeros(2) + le(kNone, 8) + le(kNone, 8)}; }
/// The flags say which fields there are besides.
inline Text link(const std::string& name, std::uint64_t address, std::uint8_t flags = 0,
                 std::uint8_t type = 0) {
  std::string bytes = le(1, 1) + le(flags, 1);
  if (flags & 8u) bytes += le(type, 1);
  if (flags & 4u) bytes += std::string(8, '\x5a');
  if (flags & 16u) bytes += le(1, 1);
  return {6, bytes + le(name.size(), std::size_t{1} << (flags & 3u)) + name + le(address, 8)};
}

inline std::string type_head(std::uint8_t kind, std::uint32_t bits, std::uint32_t bytes) {
  return le(0x10u | kind, 1) + le(bits, 3) + le(bytes, 4);
}
inline std::string integer(std::uint32_t bytes, bool has_sign, bool big = false) {
  return type_head(0, (has_sign ? 8u : 0u) | (big ? 1u : 0u), bytes) + le(0, 2) +
         le(std::uint64_t{8} * bytes, 2);
}
inline std::string floating(std::uint32_t bytes, std::uint8_t exponent, std::uint8_t mantissa,
                            std::uint32_t bits = 0x20) {
  return type_head(1, bits, bytes) + le(0, 2) + le(std::uint64_t{8} * bytes, 2) + le(mantissa, 1) +
         le(exponent, 1) + le(0, 1) + le(mantissa, 1) + le(127, 4);
}
inline std::string float32() { return floating(4, 8, 23); }
inline std::string text(std::uint32_t bytes, std::uint32_t padding) {
  return type_head(3, padding, bytes);
}
inline std::string variable_text() { return type_head(9, 1, 16) + integer(1, false); }
/// Version 2.
inline std::string space(const Shape& shape) {
  std::string out = le(2, 1) + le(shape.size(), 1) + le(0, 1) + le(shape.empty() ? 0 : 1, 1);
  for (const std::int64_t size : shape) out += le(static_cast<std::uint64_t>(size), 8);
  return out;
}

/// Version 3.
inline Text attribute(const std::string& name, const std::string& type, const std::string& shape,
                      const std::string& data) {
  return {12, le(3, 1) + le(0, 1) + le(name.size() + 1, 2) + le(type.size(), 2) +
                  le(shape.size(), 2) + le(0, 1) + name + zeros(1) + type + shape + data};
}
/// As one of version 1, whose parts are filled up to 8 bytes.
inline Text old_attribute(const std::string& name, const std::string& type,
                          const std::string& shape, const std::string& data) {
  const auto filled = [](std::string part) {
    part.resize((part.size() + 7) / 8 * 8, '\0');
    return part;
  };
  return {12, le(1, 2) + le(name.size() + 1, 2) + le(type.size(), 2) + le(shape.size(), 2) +
                  filled(name + zeros(1)) + filled(type) + filled(shape) + data};
}

inline Text layout(const std::string& bytes) { return {8, bytes}; }
inline Text contiguous(std::uint64_t address, std::uint64_t bytes) {
  return layout(le(3, 1) + le(1, 1) + le(address, 8) + le(bytes, 8));
}
inline Text filters(const std::vector<std::uint16_t>& ids) {
  std::string bytes = le(2, 1) + le(ids.size(), 1);
  for (const std::uint16_t id : ids) {
    bytes += le(id, 2);
    if (id >= 256) bytes += le(3, 2);
    bytes += le(0, 2) + le(1, 2);
    if (id >= 256) bytes += "abc";
    bytes += le(4, 4);
  }
  return {11, bytes};
}

/// Bytes as they are, in a zlib stream.
inline std::string stored_zlib(const std::string& bytes) {
  std::uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  std::string sum = le(b << 16 | a, 4);
  std::swap(sum[0], sum[3]);
  std::swap(sum[1], sum[2]);
  return "\x78\x01\x01" + le(bytes.size(), 2) + le(~bytes.size(), 2) + bytes + sum;
}

/// Blocks behind a superblock of 100 bytes at most.
class File {
 public:
  File() : bytes_(104, '\0') {}
  std::uint64_t add(const std::string& block) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8, '\0');
    const std::uint64_t address = bytes_.size();
    bytes_ += block;
    return address;
  }
  std::uint64_t next() const { return (bytes_.size() + 7) / 8 * 8; }
  /// The whole file. The version of the superblock is 0 to 3; what it says can be wrong.
  std::string finish(std::uint64_t root, std::uint8_t version = 2, std::uint64_t base = 0,
                     std::int64_t more = 0) const {
    std::string out = bytes_;
    const auto end = static_cast<std::uint64_t>(static_cast<std::int64_t>(out.size()) + more);
    std::string head = "\x89HDF\r\n\x1a\n" + le(version, 1);
    if (version < 2) {
      head += zeros(4) + le(8, 1) + le(8, 1) + zeros(1) + le(4, 2) + le(16, 2) + zeros(4);
      if (version) head += le(32, 2) + zeros(2);
      head += le(base, 8) + le(kNone, 8) + le(end, 8) + le(kNone, 8) + zeros(8) + le(root, 8);
    } else {
      head +=
          le(8, 1) + le(8, 1) + zeros(1) + le(base, 8) + le(kNone, 8) + le(end, 8) + le(root, 8);
      head = checked(head);
    }
    return out.replace(0, head.size(), head);
  }

 private:
  std::string bytes_;
};

/// A file whose root has these messages besides the one that makes it a group.
inline std::string with_root(File file, std::vector<Text> messages, std::uint8_t flags = 2) {
  messages.insert(messages.begin(), link_info());
  const std::uint64_t root = file.add(object(messages, flags));
  return file.finish(root);
}
/// A file of one dataset 'd'.
inline std::string with_dataset(File file, const std::string& type, const std::string& shape,
                                std::vector<Text> more) {
  more.insert(more.begin(), {Text{3, type}, Text{1, shape}});
  const std::uint64_t dataset = file.add(object(more));
  return with_root(std::move(file), {link("d", dataset)});
}

/// As a file of its own, for ModelFile.
class Written {
 public:
  explicit Written(const std::string& bytes) { write_raw(path(), bytes); }
  std::string path() const { return folder_ / "m"; }

 private:
  TempFolder folder_;
};

/// Opening it, or reading its datasets, is an error with that part.
inline void expect_unreadable(const std::string& bytes, const std::string& part) {
  const Written file(bytes);
  const auto read = [&] {
    const ModelFile model(file.path());
    for (const TensorInfo& info : model.tensors()) model.read_bytes(info.name);
  };
  EXPECT_MESSAGE(Error, read(), part);
}

}  // namespace openrnn::formats::hdf5_text
