#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "formats/table/table.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

class StringFile : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string bytes;
};

}  // namespace

std::string build_table(const std::map<std::string, std::string>& entries, TableOptions options) {
  leveldb::Options table_options;
  table_options.block_size = options.block_size;
  table_options.block_restart_interval = 16;
  table_options.compression =
      options.snappy ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  StringFile file;
  leveldb::TableBuilder builder(table_options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  const leveldb::Status status = builder.Finish();
  if (!status.ok()) throw IoError("[build_table] " + status.ToString());
  return std::move(file.bytes);
}

}  // namespace openrnn::formats
