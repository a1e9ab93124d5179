// The one table of what is read as networks, and of what networks are written to. A framework is a
// folder of this room and a row of each.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// A kind of file that holds networks.
struct ReadableKind {
  FileKind kind;
  /// Sets all of the result but `what`. Throws: as load_networks.
  MappedModel (*load)(const std::string& path, const MappingHints& hints);
};
/// Null for a kind without networks.
const ReadableKind* find_readable(FileKind kind);

/// A kind of file that networks are written to.
struct WritableFormat {
  ModelFormat format;
  std::string_view name;
  /// Of the name of a file, with the point. Those of longer ones come first in the table.
  std::span<const std::string_view> endings;
  /// Throws: as save_networks; the model has been checked to fit its specs.
  void (*save)(const std::string& path, const MappedModel& model);
  /// As holds_layers.
  bool layers = false;
  /// As holds_value; null: of any name.
  bool (*holds_value)(std::string_view name) = nullptr;
};
std::span<const WritableFormat> writable_formats();

}  // namespace openrnn::mapping
