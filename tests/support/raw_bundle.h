// Bundles made by hand, so that they can say anything.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/crc/crc32c.h"
#include "formats/bundle/bundle.h"
#include "formats/table/table.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {

struct RawBundle {
  std::map<std::string, BundleEntry> entries;
  std::string header = encode_header(1);
  std::string data;

  /// A float vector whose bytes are appended; returns the entry for further damage.
  BundleEntry& add(const std::string& name, const std::vector<float>& values) {
    BundleEntry& entry = entries[name];
    entry.dtype = 1;
    entry.shape = {static_cast<std::int64_t>(values.size())};
    entry.offset = static_cast<std::int64_t>(data.size());
    entry.size = static_cast<std::int64_t>(values.size() * sizeof(float));
    const std::string bytes(reinterpret_cast<const char*>(values.data()),
                            values.size() * sizeof(float));
    entry.crc = mask_crc(crc32c(bytes));
    data += bytes;
    return entry;
  }

  std::string index() const {
    std::map<std::string, std::string> table{{"", header}};
    for (const auto& [name, entry] : entries) {
      std::string value = encode_entry(entry);
      for (const TensorSlice& slice : entry.slices) value += encode_slice(slice);
      table[name] = value;
    }
    return build_table(table);
  }

  void write(const std::string& prefix) const {
    write_raw(prefix + ".index", index());
    write_raw(prefix + ".data-00000-of-00001", data);
  }

  /// Field 7 of an entry; short lengths alone, so that every varint is one byte.
  static std::string encode_slice(const TensorSlice& slice) {
    std::string body;
    for (const SliceExtent& extent : slice) {
      std::string one;
      if (extent.start) one += std::string("\x08") + static_cast<char>(extent.start);
      if (extent.length >= 0) one += std::string("\x10") + static_cast<char>(extent.length);
      body += std::string("\x0a") + static_cast<char>(one.size()) + one;
    }
    return std::string("\x3a") + static_cast<char>(body.size()) + body;
  }
};

}  // namespace openrnn::formats
