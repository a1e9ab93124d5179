// Putting a new pair of files at a prefix where an old one may lie.
//
// The writer makes PREFIX.data...new, then PREFIX.index.new, both synced, then renames the data and
// last the index. So whoever finds PREFIX.index.new alone beside data that it fits finds a save
// that was whole and lacked its last rename; with PREFIX.data...new still there, the old pair is
// untouched.
#pragma once

#include <string>

#include "openrnn/formats.h"

namespace openrnn::formats {

std::string index_path(const std::string& prefix);
std::string data_path(const std::string& prefix, std::int32_t shard, std::int32_t num_shards);
std::string unfinished(const std::string& path);

/// What to read at a prefix.
struct BundlePaths {
  std::string index;
  /// Of the only shard, where it is not data_path().
  std::string data;
};

/// Finishes a half-done exchange if its checksums are right, or passes it over. Where files cannot
/// be renamed (a read-only folder) the paths say which to read.
BundlePaths finish_exchange(const std::string& prefix);

/// Both unfinished files are whole: puts them in their place. Throws: IoError.
void exchange(const std::string& prefix);

}  // namespace openrnn::formats
