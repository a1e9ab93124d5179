// LevelDB's own reader trusts the sizes in a file (entry lengths that overflow 32 bits, a block
// handle near 2^64), so untrusted files are read by this one.

#include <optional>

#include "base/crc/crc32c.h"
#include "base/message.h"
#include "formats/coding.h"
#include "formats/table/snappy.h"
#include "formats/table/table.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kTrailerBytes = 5;  // compression type, masked checksum
// A key is stored whole every 16 entries, so keys expand to at most 16 times their stored bytes.
// The bound is above that, and keeps a small file from taking much memory.
constexpr std::uint64_t kMaxKeyExpansion = 64;

bool take_handle(ByteCursor* in, BlockHandle* handle) {
  return in->varint64(&handle->offset) && in->varint64(&handle->size);
}

class TableReader {
 public:
  TableReader(const ByteSource& file, bool verify) : file_(file), verify_(verify) {}

  void visit_all(const TableVisitor& visit) {
    const BlockHandle index = read_footer();
    const std::string index_block = read_block(index);
    std::optional<std::string> last;
    const TableVisitor visit_ascending = [&](std::string_view key, std::string_view value,
                                             std::uint64_t offset) {
      if (last && key <= *last) fail(offset, "keys do not ascend, expected a sorted table");
      last.emplace(key);
      visit(key, value, offset);
    };
    read_entries(index_block, index.offset,
                 [&](std::string_view, std::string_view value, std::uint64_t offset) {
                   ByteCursor in(value);
                   BlockHandle block;
                   if (!take_handle(&in, &block)) fail(offset, "a block handle is cut short");
                   read_entries(read_block(block), block.offset, visit_ascending);
                 });
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const {
    throw FormatError(file_.path(), offset, what);
  }

  BlockHandle read_footer() const {
    if (file_.size() < kTableFooterBytes) {
      fail(0, message("the file has ", file_.size(), " bytes, expected a checkpoint index of ",
                      kTableFooterBytes, " or more"));
    }
    const std::uint64_t start = file_.size() - kTableFooterBytes;
    const std::string footer = file_.read_string(start, kTableFooterBytes);
    std::uint64_t magic = 0;
    ByteCursor(std::string_view(footer).substr(kTableFooterBytes - 8)).fixed(&magic);
    if (magic != kTableMagic) {
      fail(start,
           "the last 8 bytes are not a table's magic number: the file is cut short or is not "
           "a checkpoint index");
    }
    ByteCursor in(footer);
    BlockHandle meta, index;
    if (!take_handle(&in, &meta) || !take_handle(&in, &index)) {
      fail(start, "the footer's block handles are cut short");
    }
    return index;
  }

  std::string read_block(BlockHandle handle) const {
    if (handle.size > file_.size() || handle.offset > file_.size()) {
      fail(file_.size(), message("a block handle says ", handle.size, " bytes at ", handle.offset,
                                 ", expected a block inside the file of ", file_.size(), " bytes"));
    }
    std::string stored = file_.read_string(handle.offset, handle.size + kTrailerBytes);
    std::uint32_t expected = 0;
    ByteCursor(std::string_view(stored).substr(handle.size + 1)).fixed(&expected);
    const char type = stored[handle.size];
    stored.resize(handle.size + 1);
    const std::uint32_t found = mask_crc(crc32c(stored));
    if (verify_ && found != expected) {
      fail(handle.offset, message("a block has checksum ", found, ", expected ", expected));
    }
    stored.pop_back();
    if (type == 0) return stored;
    if (type != 1)
      fail(handle.offset, message("block compression ", int{type}, ", expected 0 or 1"));
    std::optional<std::string> plain = snappy_decompress(stored);
    if (!plain) fail(handle.offset, "a snappy block does not decompress");
    return std::move(*plain);
  }

  // The entries, without the restart offsets and their number, which only a search needs.
  std::string_view entries_of(std::string_view block, std::uint64_t offset) const {
    std::uint32_t restarts = 0;
    if (block.size() < 4) fail(offset, "a block is shorter than its restart count");
    ByteCursor(block.substr(block.size() - 4)).fixed(&restarts);
    const std::uint64_t tail = 4 + std::uint64_t{4} * restarts;
    if (tail > block.size()) {
      fail(offset, message("a block of ", block.size(), " bytes claims ", restarts, " restarts"));
    }
    return block.substr(0, block.size() - static_cast<std::size_t>(tail));
  }

  void read_entries(const std::string& block, std::uint64_t offset,
                    const TableVisitor& visit) const {
    ByteCursor in(entries_of(block, offset));
    const std::uint64_t key_limit = kMaxKeyExpansion * block.size();
    std::uint64_t key_bytes = 0;
    std::string key;
    while (!in.empty()) {
      std::uint32_t shared = 0, non_shared = 0, value_size = 0;
      std::string_view rest, value;
      if (!in.varint32(&shared) || !in.varint32(&non_shared) || !in.varint32(&value_size) ||
          shared > key.size() || !in.bytes(non_shared, &rest) || !in.bytes(value_size, &value)) {
        fail(offset, "an entry of this block is cut short");
      }
      key.resize(shared);
      key.append(rest);
      key_bytes += key.size();
      if (key_bytes > key_limit) fail(offset, "the keys of this block expand beyond belief");
      visit(key, value, offset);
    }
  }

  const ByteSource& file_;
  bool verify_;
};

}  // namespace

void read_table(const ByteSource& file, bool verify_checksums, const TableVisitor& visit) {
  TableReader(file, verify_checksums).visit_all(visit);
}

}  // namespace openrnn::formats
