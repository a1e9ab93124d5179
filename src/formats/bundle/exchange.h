// Putting a new pair of files at a prefix where an old one may lie.
//
// The writer makes PREFIX.data...new, then PREFIX.index.new, both synced, then renames the data and
// last the index. So whoever finds PREFIX.index.new alone beside data that it fits finds a save
// that was whole and lacked its last rename; with PREFIX.data...new still there, the old pair is
// untouched. The writer holds the lock of its data file until the index is in its place.
#pragma once

#include <string>

#include "formats/bundle/bundle.h"
#include "formats/file/system.h"
#include "openrnn/formats.h"

namespace openrnn::formats {

std::string index_path(const std::string& prefix);
std::string data_path(const std::string& prefix, std::int32_t shard, std::int32_t num_shards);
std::string unfinished(const std::string& path);

/// The files that a writer handles at a prefix.
struct PairPaths {
  explicit PairPaths(const std::string& prefix);
  std::string index, data, new_index, new_data;
};

/// Opens the pair that is whole, old or new, also while a writer exchanges one for the other, and
/// changes nothing on disk. Throws: IoError, FormatError.
std::unique_ptr<Bundle> open_whole_bundle(const std::string& prefix, TensorBundleOptions options);

/// For a writer, before it begins: finishes what one that died left half done, if its checksums are
/// right, or else removes it. Returns the lock of the data in its place, not open if there is none:
/// held until the new data is created, no other writer begins. Throws: IoError; StateError if
/// another writer is at this prefix.
Descriptor settle(const PairPaths& paths);

/// Both unfinished files are whole: puts them in their place. Takes no memory. Throws: IoError.
void exchange(const PairPaths& paths, const FolderSync& folder);

}  // namespace openrnn::formats
