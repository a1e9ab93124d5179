#include <bit>

#include "base/message.h"
#include "formats/hdf5/structure/fractal_heap.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kTreeHeaderBytes = 38;
// Signature, version, type and checksum of a node.
constexpr std::uint64_t kNodeOverhead = 10;
constexpr std::uint64_t kMaxTreeDepth = 8;
constexpr const char* kTree = "a B-tree";

// The library's own count: one more byte at each power of 256.
std::size_t counter_bytes(std::uint64_t most) {
  return static_cast<std::size_t>((std::bit_width(most | 1u) - 1) / 8 + 1);
}

class Btree2Reader {
 public:
  Btree2Reader(Hdf5File& file, std::uint64_t type, std::uint64_t record_bytes)
      : file_(file), type_(type), record_bytes_(record_bytes) {}

  std::vector<std::string> read(std::uint64_t address) {
    const std::string header = file_.read(address, kTreeHeaderBytes, kTree);
    check_lookup3(file_, address, header, kTree);
    Hdf5Fields in(file_, address, header, kTree);
    in.expect("BTHD");
    in.version(0, 0);
    const std::uint64_t type = in.number(1);
    const std::uint64_t node_bytes = in.number(4), record_bytes = in.number(2);
    const std::uint64_t depth = in.number(2);
    in.skip(2);
    const std::uint64_t root = in.address(), records = in.number(2);
    if (type != type_ || record_bytes != record_bytes_ || depth > kMaxTreeDepth ||
        node_bytes < kNodeOverhead + record_bytes) {
      in.fail(message("is of type ", type, " and depth ", depth, " with records of ", record_bytes,
                      " bytes in nodes of ", node_bytes, ", expected type ", type_, " with ",
                      record_bytes_));
    }
    size_counters(node_bytes, depth);
    if (root != kNoAddress) read_node(root, records, depth);
    return std::move(records_);
  }

 private:
  // How many bytes the counts beside an address have.
  void size_counters(std::uint64_t node_bytes, std::uint64_t depth) {
    const std::uint64_t in_leaf = (node_bytes - kNodeOverhead) / record_bytes_;
    count_bytes_ = counter_bytes(in_leaf);
    total_bytes_.assign(1, 0);
    std::uint64_t below = in_leaf;
    for (std::uint64_t level = 1; level <= depth; ++level) {
      const std::uint64_t pointer = 8 + count_bytes_ + total_bytes_.back();
      if (node_bytes < kNodeOverhead + pointer) file_.fail(0, "a B-tree has nodes too small");
      const std::uint64_t here = (node_bytes - kNodeOverhead - pointer) / (record_bytes_ + pointer);
      std::uint64_t total = 0;
      if (__builtin_mul_overflow(here + 1, below, &total) ||
          __builtin_add_overflow(total, here, &total)) {
        file_.fail(0, "a B-tree has room for more than 2^64 records, expected fewer");
      }
      below = total;
      total_bytes_.push_back(counter_bytes(below));
    }
  }

  void read_node(std::uint64_t address, std::uint64_t records, std::uint64_t level) {
    const std::uint64_t totals = level ? total_bytes_[level - 1] : 0;
    const std::uint64_t pointers = level ? (records + 1) * (8 + count_bytes_ + totals) : 0;
    // All counts are of at most 16 bits in files that are read; the range is checked anyway.
    const std::uint64_t bytes = kNodeOverhead + records * record_bytes_ + pointers;
    const std::string node = file_.read(address, bytes, kTree);
    check_lookup3(file_, address, node, kTree);
    Hdf5Fields in(file_, address, node, "a node of a B-tree");
    in.expect(level ? "BTIN" : "BTLF");
    in.version(0, 0);
    if (in.number(1) != type_) in.fail("has another type than its tree, expected the same");
    const std::string_view all = in.bytes(records * record_bytes_);
    for (std::uint64_t i = 0; i <= records; ++i) {
      if (level) {
        const std::uint64_t child = in.address(), count = in.number(count_bytes_);
        in.skip(totals);
        if (count > file_.source().size()) in.fail(message("has ", count, " records below"));
        read_node(child, count, level - 1);
      }
      if (i < records) records_.emplace_back(all.substr(i * record_bytes_, record_bytes_));
    }
  }

  Hdf5File& file_;
  std::uint64_t type_, record_bytes_;
  std::size_t count_bytes_ = 0;
  // Of the totals that a node of the level above has for its children, by level.
  std::vector<std::size_t> total_bytes_;
  std::vector<std::string> records_;
};

}  // namespace

std::vector<std::string> read_btree2(Hdf5File& file, std::uint64_t address, std::uint64_t type,
                                     std::uint64_t record_bytes) {
  return Btree2Reader(file, type, record_bytes).read(address);
}

}  // namespace openrnn::formats
