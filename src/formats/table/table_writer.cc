// Writes a table as LevelDB's TableBuilder does, byte for byte. LevelDB's own is compiled without
// exceptions and aborts when memory runs out.

#include <algorithm>
#include <vector>

#include "base/crc/crc32c.h"
#include "formats/coding.h"
#include "formats/table/table.h"

namespace openrnn::formats {

namespace {

// Of data blocks; in the index block every key is whole.
constexpr std::uint32_t kRestartInterval = 16;

void put_handle(std::string* out, BlockHandle handle) {
  put_varint64(out, handle.offset);
  put_varint64(out, handle.size);
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end.first - a.begin());
}

// A short key that is at least `last` and below `next`.
std::string separator(const std::string& last, std::string_view next) {
  const std::size_t at = common_prefix(last, next);
  if (at == last.size() || at == next.size()) return last;
  const auto byte = static_cast<unsigned char>(last[at]);
  if (byte + 1 >= static_cast<unsigned char>(next[at])) return last;
  return last.substr(0, at) + static_cast<char>(byte + 1);
}

// A short key that is at least `last`.
std::string successor(const std::string& last) {
  for (std::size_t i = 0; i < last.size(); ++i) {
    const auto byte = static_cast<unsigned char>(last[i]);
    if (byte != 0xff) return last.substr(0, i) + static_cast<char>(byte + 1);
  }
  return last;
}

class Block {
 public:
  explicit Block(std::uint32_t restart_interval) : interval_(restart_interval) {}

  bool empty() const noexcept { return bytes_.empty(); }
  std::size_t size() const noexcept { return bytes_.size() + 4 * restarts_.size() + 4; }

  void add(std::string_view key, std::string_view value) {
    std::size_t shared = 0;
    if (entries_ < interval_) {
      shared = common_prefix(last_, key);
    } else {
      restarts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
      entries_ = 0;
    }
    put_varint64(&bytes_, shared);
    put_varint64(&bytes_, key.size() - shared);
    put_varint64(&bytes_, value.size());
    bytes_.append(key.substr(shared)).append(value);
    last_ = key;
    ++entries_;
  }

  std::string finish() const {
    std::string bytes = bytes_;
    for (const std::uint32_t restart : restarts_) put_fixed(&bytes, restart);
    put_fixed(&bytes, static_cast<std::uint32_t>(restarts_.size()));
    return bytes;
  }

 private:
  std::uint32_t interval_;
  std::string bytes_;
  std::vector<std::uint32_t> restarts_{0};
  std::string last_;
  std::uint32_t entries_ = 0;  // since the last restart
};

BlockHandle append_block(std::string* file, const Block& block) {
  std::string bytes = block.finish();
  const BlockHandle handle{file->size(), bytes.size()};
  bytes += '\0';  // not compressed
  const std::uint32_t crc = mask_crc(crc32c(bytes));
  *file += bytes;
  put_fixed(file, crc);
  return handle;
}

}  // namespace

std::string build_table(const std::map<std::string, std::string>& entries, std::size_t block_size) {
  std::string file;
  Block data(kRestartInterval), index(1);
  const auto end_block = [&](const std::string& key) {
    std::string handle;
    put_handle(&handle, append_block(&file, data));
    index.add(key, handle);
    data = Block(kRestartInterval);
  };
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    data.add(entry->first, entry->second);
    const auto next = std::next(entry);
    if (next == entries.end()) {
      end_block(successor(entry->first));
    } else if (data.size() >= block_size) {
      end_block(separator(entry->first, next->first));
    }
  }
  const BlockHandle meta_at = append_block(&file, Block(kRestartInterval));
  const BlockHandle index_at = append_block(&file, index);
  std::string footer;
  put_handle(&footer, meta_at);
  put_handle(&footer, index_at);
  footer.resize(kTableFooterBytes - sizeof kTableMagic);
  put_fixed(&footer, kTableMagic);
  return file + footer;
}

}  // namespace openrnn::formats
