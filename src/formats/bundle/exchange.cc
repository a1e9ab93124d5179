#include "formats/bundle/exchange.h"

#include <cstdio>
#include <thread>

#include "base/message.h"
#include "formats/file/atomic_file.h"

namespace openrnn::formats {

namespace {

// A writer in a loop replaces a pair a few thousand times a second, and a try takes some
// microseconds: this is many times more tries than needed.
constexpr int kMostAttempts = 10000;

/// The files at the four names at one moment.
struct Sight {
  explicit Sight(const PairPaths& paths)
      // In this order: an index that is still the same afterwards was not replaced before.
      : new_index(identity_of(paths.new_index)),
        new_data(identity_of(paths.new_data)),
        index(identity_of(paths.index)),
        data(identity_of(paths.data)) {}

  FileIdentity new_index, new_data, index, data;
  friend bool operator==(const Sight&, const Sight&) = default;

  /// The data may be that of the new index. While both new files exist, the old pair is complete.
  bool half_done() const { return new_index.there && !(new_data.there && index.there); }
};

struct OpenPair {
  std::unique_ptr<FileSource> index, data;
};

Bundle parse(OpenPair pair, const std::string& prefix, TensorBundleOptions options) {
  const auto open_shard = [&](std::int32_t shard, std::int32_t num_shards) {
    if (num_shards == 1 && pair.data) return std::move(pair.data);
    return std::make_unique<FileSource>(data_path(prefix, shard, num_shards));
  };
  return Bundle(*pair.index, open_shard, options);
}

/// The save in these two files if it is complete, by its checksums; else null.
std::unique_ptr<Bundle> open_if_whole(const std::string& index, const std::string& data) {
  try {
    // Our writer makes one data file; anything else is not from it.
    const auto open_shard = [&](std::int32_t, std::int32_t num_shards) {
      if (num_shards != 1) throw FormatError(index, 0, "expected one data file");
      return std::make_unique<FileSource>(data);
    };
    auto bundle = std::make_unique<Bundle>(FileSource(index), open_shard, TensorBundleOptions());
    bundle->verify();
    return bundle;
  } catch (const Error&) {
    return nullptr;
  }
}

OpenPair open_pair(const PairPaths& paths) {
  if (!file_exists(paths.index)) {
    throw IoError(message("[TensorBundleReader] ", paths.index,
                          " is missing, expected the prefix of a checkpoint"));
  }
  OpenPair pair{std::make_unique<FileSource>(paths.index), nullptr};
  if (file_exists(paths.data)) pair.data = std::make_unique<FileSource>(paths.data);
  return pair;
}

// Both are open, so no later file has their identity. The index is still in place after the data
// was opened, and no replacement was half done in between, so they are a pair.
bool is_pair(const OpenPair& pair, const Sight& later) {
  return pair.index->identity() == later.index &&
         (pair.data ? pair.data->identity() : FileIdentity()) == later.data;
}

/// Which files of an unfinished save there are.
struct Waiting {
  explicit Waiting(const PairPaths& paths)
      : index(is_own_file(paths.new_index)), data(is_own_file(paths.new_data)) {}
  bool index, data;
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

/// The last step of replacing a pair.
void put_index(const PairPaths& paths, const FolderSync& folder) {
  // The data's rename must not reach the disk after the index's.
  folder.sync();
  rename_file(paths.new_index, paths.index);
  folder.sync();
}

}  // namespace

std::string index_path(const std::string& prefix) { return prefix + ".index"; }

std::string data_path(const std::string& prefix, std::int32_t shard, std::int32_t num_shards) {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", shard, num_shards);
  return prefix + suffix;
}

std::string unfinished(const std::string& path) { return path + std::string(kUnfinishedSuffix); }

PairPaths::PairPaths(const std::string& prefix)
    : index(index_path(prefix)),
      data(data_path(prefix, 0, 1)),
      new_index(unfinished(index)),
      new_data(unfinished(data)) {}

std::unique_ptr<Bundle> open_whole_bundle(const std::string& prefix, TensorBundleOptions options) {
  const PairPaths paths(prefix);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (attempt) std::this_thread::yield();
    const Sight before(paths);
    if (before.half_done()) {
      const std::string& data = before.new_data.there ? paths.new_data : paths.data;
      if (auto whole = open_if_whole(paths.new_index, data)) return whole;
    }
    try {
      OpenPair pair = open_pair(paths);
      const Sight after(paths);
      if (!(after == before) || !is_pair(pair, after)) continue;
      return std::make_unique<Bundle>(parse(std::move(pair), prefix, options));
    } catch (const IoError&) {
      if (Sight(paths) == before) throw;
    }
  }
  throw IoError(message("[TensorBundleReader] ", prefix, " was written over ", kMostAttempts,
                        " times while it was opened, expected a pair that stays for a moment"));
}

Descriptor settle(const PairPaths& paths) {
  for (;;) {
    const Waiting waiting(paths);
    // Between its two renames a living writer holds the lock of the data in its place.
    Descriptor lock = lock_existing(waiting.data ? paths.new_data : paths.data);
    // Else it was seen before the last writer was done, and another may be writing already.
    if (!(Waiting(paths) == waiting)) continue;
    if (!waiting.index && !waiting.data) return lock;
    const bool half_done = waiting.index && !(waiting.data && file_exists(paths.index));
    if (half_done && open_if_whole(paths.new_index, waiting.data ? paths.new_data : paths.data)) {
      const FolderSync folder(paths.index);
      waiting.data ? exchange(paths, folder) : put_index(paths, folder);
      continue;
    }
    if (waiting.index) remove_file(paths.new_index);
    if (waiting.data) remove_file(paths.new_data);
  }
}

void exchange(const PairPaths& paths, const FolderSync& folder) {
  folder.sync();
  rename_file(paths.new_data, paths.data);
  put_index(paths, folder);
}

}  // namespace openrnn::formats
