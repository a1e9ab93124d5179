// Replacing a pair of files at a prefix.
//
// The writer makes PREFIX.data...new, then PREFIX.index.new, both synced, then renames the data and
// last the index. So PREFIX.index.new alone, with data that it matches, is a complete save without
// its last rename; while PREFIX.data...new exists, the old pair is untouched. The writer holds the
// lock of its data file until the index is in its place.
#pragma once

#include <string>

#include "formats/bundle/bundle.h"
#include "formats/file/system.h"
#include "openrnn/formats.h"

namespace openrnn::formats {

std::string index_path(const std::string& prefix);
std::string data_path(const std::string& prefix, std::int32_t shard, std::int32_t num_shards);
std::string unfinished(const std::string& path);

/// The files of a writer at a prefix.
struct PairPaths {
  explicit PairPaths(const std::string& prefix);
  std::string index, data, new_index, new_data;
};

/// Opens the complete pair, old or new, also while a writer replaces one by the other, and changes
/// nothing on disk. Throws: IoError, FormatError.
std::unique_ptr<Bundle> open_whole_bundle(const std::string& prefix, TensorBundleOptions options);

/// For a writer, before it begins: completes an unfinished save of a dead writer if its checksums
/// are right, else removes it. Returns the lock of the data in its place, not open if there is
/// none: while it is held, until the new data is created, no other writer begins. Throws: IoError;
/// StateError if another writer has this prefix.
Descriptor settle(const PairPaths& paths);

/// Both new files are complete: renames them into place. Allocates nothing. Throws: IoError.
void exchange(const PairPaths& paths, const FolderSync& folder);

}  // namespace openrnn::formats
