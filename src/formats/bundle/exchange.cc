#include "formats/bundle/exchange.h"

#include <cstdio>

#include "base/message.h"
#include "formats/bundle/bundle.h"
#include "formats/file/atomic_file.h"

namespace openrnn::formats {

namespace {

bool fits(const std::string& index, const std::string& data) {
  try {
    const Bundle bundle(FileSource(index),
                        [&](std::int32_t shard, std::int32_t num_shards) {
                          // Our writer makes one shard; anything else is not what it left.
                          if (shard != 0 || num_shards != 1)
                            throw FormatError(index, 0, "expected one data file");
                          return std::make_unique<FileSource>(data);
                        },
                        {});
    bundle.verify();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string index_path(const std::string& prefix) { return prefix + ".index"; }

std::string data_path(const std::string& prefix, std::int32_t shard, std::int32_t num_shards) {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", shard, num_shards);
  return prefix + suffix;
}

std::string unfinished(const std::string& path) { return path + std::string(kUnfinishedSuffix); }

BundlePaths finish_exchange(const std::string& prefix) {
  const std::string index = index_path(prefix), new_index = unfinished(index);
  const std::string data = data_path(prefix, 0, 1), new_data = unfinished(data);
  if (!file_exists(new_index)) return {index, data};
  const bool data_waits = file_exists(new_data);
  // The old pair is whole until its data is replaced.
  if (data_waits && file_exists(index)) return {index, data};
  if (!fits(new_index, data_waits ? new_data : data)) return {index, data};
  try {
    if (data_waits) rename_file(new_data, data);
    sync_folder_of(prefix);
    rename_file(new_index, index);
    sync_folder_of(prefix);
  } catch (const IoError&) {
    return {file_exists(new_index) ? new_index : index, file_exists(new_data) ? new_data : data};
  }
  return {index, data};
}

void exchange(const std::string& prefix) {
  const std::string index = index_path(prefix), data = data_path(prefix, 0, 1);
  sync_folder_of(prefix);
  rename_file(unfinished(data), data);
  // The data's rename must not reach the disk after the index's.
  sync_folder_of(prefix);
  try {
    rename_file(unfinished(index), index);
  } catch (const IoError&) {
    // A reader that came in between may have finished the exchange.
    if (file_exists(unfinished(index)) || !file_exists(index)) throw;
  }
  sync_folder_of(prefix);
}

}  // namespace openrnn::formats
