// Object headers: what the file says of a group or a dataset, as messages.
#pragma once

#include <optional>
#include <vector>

#include "formats/hdf5/structure/file.h"

namespace openrnn::formats {

enum class Hdf5MessageType : std::uint16_t {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kFilters = 0x0b,
  kAttribute = 0x0c,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
  kAttributeInfo = 0x15,
};

struct Hdf5Message {
  Hdf5MessageType type{};
  std::uint64_t offset = 0;
  std::string bytes;
};

struct Hdf5Object {
  std::uint64_t address = 0;
  /// Those whose types are listed above, without continuations.
  std::vector<Hdf5Message> messages;

  /// The first one, or nullptr.
  const Hdf5Message* find(Hdf5MessageType type) const;
  bool is_group() const {
    return find(Hdf5MessageType::kSymbolTable) || find(Hdf5MessageType::kLinkInfo);
  }
  bool is_dataset() const { return find(Hdf5MessageType::kLayout) != nullptr; }
};

/// Object headers of versions 1 and 2 with their continuations. Throws: FormatError,
/// UnsupportedError.
Hdf5Object read_object(Hdf5File& file, std::uint64_t address);

/// A hard link.
struct Hdf5Link {
  std::string name;
  std::uint64_t address = kNoAddress;
};

/// The links of a group, whose names are printable, unequal and without '/'; the old form sorted
/// by name, the new one in the order of its messages, or sorted where it has an index.
std::vector<Hdf5Link> read_links(Hdf5File& file, const Hdf5Object& group);

}  // namespace openrnn::formats
