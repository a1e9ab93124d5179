// TensorFlow's files as named tensors: bundles and where they are found, checkpoints of version 1,
// graphs with constants.
#pragma once

#include "formats/tensors/contents.h"

namespace openrnn::formats {

/// A tensor bundle that a path leads to.
struct FoundBundle {
  std::string prefix;
  /// With an article: 'a SavedModel of TensorFlow'.
  const char* what;
};
/// What a path means that is no model file itself: the folder of a SavedModel or its
/// saved_model.pb, a folder with a `checkpoint` state file, a prefix, or one of the bundle's own
/// files. Throws: IoError; FormatError for a damaged `checkpoint` file.
std::optional<FoundBundle> find_bundle(const std::string& path);
/// Its tensors; checksums are compared when they are read. Scalar strings can be read as bytes.
/// Throws: as TensorBundleReader.
FileContents read_bundle(const FoundBundle& bundle);

/// Whether a file ends as a table does, which holds a checkpoint of version 1.
bool ends_as_table(const ByteSource& file);
/// A checkpoint of version 1, of TensorFlow before 1.0: a table of slices of tensors.
/// `verify_checksums` is off for fuzzing alone. Throws: FormatError, IoError.
FileContents read_tf_v1(std::unique_ptr<ByteSource> file, bool verify_checksums = true);

/// Whether a file begins as a GraphDef with a node.
bool starts_as_tf_graph(std::string_view head, std::uint64_t size);
/// The constants of a graph by the names of their nodes, those of its functions behind
/// 'FUNCTION/'. Throws: FormatError, IoError.
FileContents read_tf_graph(std::unique_ptr<ByteSource> file);

}  // namespace openrnn::formats
