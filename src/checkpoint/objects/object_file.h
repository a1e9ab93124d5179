// A checkpoint file with an object graph.
#pragma once

#include "formats/objects/object_graph.h"
#include "openrnn/formats.h"

namespace openrnn::checkpoint {

/// An object-based checkpoint that is open.
struct ObjectFile {
  /// Throws: ArgumentError when there is no object graph in it, IoError, FormatError.
  explicit ObjectFile(const std::string& prefix);
  /// The tensor's key of an object's value; null if it has none.
  /// Throws: FormatError for a key that is not there.
  const std::string* value_of(std::size_t node) const;
  /// The node of a slot; nothing if the file does not have it.
  std::optional<std::size_t> slot_of(std::size_t optimizer, std::size_t original,
                                     const std::string& name) const;
  /// The value of the root's save counter. Throws: FormatError unless it is an int64 of at least 0.
  std::optional<std::int64_t> save_counter() const;

  TensorBundleReader reader;
  formats::ObjectGraph graph;
};

}  // namespace openrnn::checkpoint
