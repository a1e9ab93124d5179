// OpenRNN's own model files: networks with their weights in one file, which openrnn::core reads
// without any other library. The file is one of safetensors (docs/model_files.md).
#pragma once

#include <utility>

#include "openrnn/runtime.h"

namespace openrnn {

/// One network of a NetworkFile.
struct StoredNetwork {
  std::string name;
  RnnSpec spec;
  /// The opaque buffer, as all views below in the bytes of the file.
  ConstArrayView params;
  /// [L*D, O] and [L*D, U]: states to begin with, if it has some.
  std::optional<ConstArrayView> initial_h, initial_c;
  /// Optimizer slots by name.
  std::vector<std::pair<std::string, ConstArrayView>> slots;
  /// The names of its tensors in the file, and the CRC-32C of each.
  std::vector<std::string> tensors;
  std::vector<std::uint32_t> checksums;
};

/// The networks of one file. All that its header says is checked when it is opened; the elements
/// are neither copied nor read before they are asked for. Thread-safe.
class OPENRNN_API NetworkFile {
 public:
  /// Maps the file, which must not be truncated meanwhile: that would end the process (SIGBUS).
  /// Throws: IoError; FormatError for what is no file of OpenRNN; UnsupportedError for one of a
  /// later version.
  explicit NetworkFile(const std::string& path);
  /// Of bytes that the caller keeps, such as a part of a program; `path` is for messages. Bytes
  /// that are not at a multiple of 8 are copied. Throws: FormatError, UnsupportedError.
  explicit NetworkFile(std::span<const std::byte> bytes, const std::string& path = "memory");
  ~NetworkFile();
  NetworkFile(NetworkFile&&) noexcept;
  NetworkFile& operator=(NetworkFile&&) noexcept;

  const std::string& path() const noexcept;
  /// Views are valid as long as this object.
  const std::vector<StoredNetwork>& networks() const noexcept;
  /// Throws: ArgumentError listing the names for one that is not there.
  const StoredNetwork& network(std::string_view name) const;
  /// What the file holds beside the networks, in its order.
  const std::vector<std::pair<std::string, std::string>>& metadata() const noexcept;
  /// Tensors of no network.
  const std::vector<std::string>& other_tensors() const noexcept;
  /// Of the sums of the library that wrote it; weights do not depend on it.
  std::int64_t arithmetic_version() const noexcept;
  /// Compares the checksums of all tensors of that network. Throws: FormatError.
  void verify(const StoredNetwork& network) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A network of a file, packed for inference; the name may be left out where the file has one.
/// Throws: as NetworkFile, NetworkFile::network and PackedModel; FormatError for a wrong checksum.
OPENRNN_API std::shared_ptr<const PackedModel> load_packed(const std::string& path,
                                                           std::string_view name = {},
                                                           const ModelOptions& options = {});
OPENRNN_API std::shared_ptr<const PackedModel> load_packed(std::span<const std::byte> bytes,
                                                           std::string_view name = {},
                                                           const ModelOptions& options = {});

}  // namespace openrnn
