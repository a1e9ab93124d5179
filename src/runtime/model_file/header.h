// The header of a safetensors file, of what OpenRNN writes into one.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "openrnn/base.h"

namespace openrnn::runtime {

/// The keys of the metadata that are OpenRNN's own.
inline constexpr std::string_view kOwnPrefix = "openrnn.", kNetworksKey = "openrnn.networks",
                                  kChecksumKey = "openrnn.checksum", kLayoutKey = "openrnn.layout",
                                  kArithmeticKey = "openrnn.arithmetic";
/// Of the opaque buffer, and of what the metadata say.
inline constexpr std::int64_t kLayoutVersion = 1;

struct FileTensor {
  /// Nothing for an element type that no network has.
  std::optional<DType> dtype;
  Shape shape;
  std::span<const std::byte> bytes;
};

struct FileHeader {
  std::map<std::string, FileTensor, std::less<>> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The header of these bytes of a whole file; the tensors cover what is behind it once, without
/// holes. Throws: FormatError.
FileHeader read_header(const std::string& path, std::span<const std::byte> bytes);

}  // namespace openrnn::runtime
