#include <algorithm>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/hdf5/structure/fractal_heap.h"
#include "formats/hdf5/structure/objects.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kTreeHead = 24, kSymbolBytes = 40, kHeapHead = 32;
constexpr std::uint64_t kSoftLink = 2, kHardLinkType = 0;
// Records by the hash of a name: 4 bytes of it, then an identifier in the heap.
constexpr std::uint64_t kLinksByName = 5, kHashBytes = 4;

// Groups of the old form: names in one heap, links in symbol tables that a B-tree lists.
class SymbolTables {
 public:
  SymbolTables(Hdf5File& file, const Hdf5Message& place) : file_(file) {
    Hdf5Fields in(file, place.offset, place.bytes, "a symbol table message");
    const std::uint64_t tree = in.address(), heap = in.address();
    const std::string head = file.read(heap, kHeapHead, "a local heap");
    Hdf5Fields fields(file, heap, head, "a local heap");
    fields.expect("HEAP");
    fields.version(0, 0);
    fields.skip(3);
    const std::uint64_t bytes = fields.number(8);
    fields.skip(8);
    names_offset_ = fields.address();
    names_ = file.read(names_offset_, bytes, "a local heap");
    read_tree(tree, std::nullopt);
  }

  std::vector<Hdf5Link> links() && { return std::move(links_); }

 private:
  void read_tree(std::uint64_t address, std::optional<std::uint64_t> expected_level) {
    const std::string head = file_.read(address, kTreeHead, "a B-tree of a group");
    Hdf5Fields in(file_, address, head, "a B-tree of a group");
    in.expect("TREE");
    if (const std::uint64_t type = in.number(1); type != 0) {
      in.fail(message("has type ", type, ", expected 0"));
    }
    const std::uint64_t level = in.number(1), entries = in.number(2);
    if (expected_level && level != *expected_level) {
      in.fail(message("has level ", level, ", expected ", *expected_level));
    }
    const std::string all =
        file_.read(address + kTreeHead, entries * 16 + 8, "a B-tree of a group");
    Hdf5Fields children(file_, address + kTreeHead, all, "a B-tree of a group");
    for (std::uint64_t i = 0; i < entries; ++i) {
      children.skip(8);  // the first name below
      const std::uint64_t child = children.address();
      if (level == 0) {
        read_symbols(child);
      } else {
        read_tree(child, level - 1);
      }
    }
  }

  void read_symbols(std::uint64_t address) {
    const std::string head = file_.read(address, 8, "a symbol table");
    Hdf5Fields fields(file_, address, head, "a symbol table");
    fields.expect("SNOD");
    fields.version(1, 1);
    fields.skip(1);
    const std::uint64_t count = fields.number(2);
    const std::string entries = file_.read(address + 8, count * kSymbolBytes, "a symbol table");
    Hdf5Fields in(file_, address + 8, entries, "a symbol table");
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t name = in.number(8), object = in.address(), kind = in.number(4);
      in.skip(4 + 16);
      links_.push_back({name_at(name), object});
      if (kind == kSoftLink) refuse_link(file_, in.offset(), links_.back().name);
    }
  }

  std::string name_at(std::uint64_t at) {
    const std::size_t end = at < names_.size() ? names_.find('\0', at) : std::string::npos;
    if (end == std::string::npos) {
      file_.fail(names_offset_, message("a name begins at ", at, " of a local heap of ",
                                        names_.size(), " bytes, expected it to end inside"));
    }
    std::string name = names_.substr(at, end - at);
    // Names that share bytes could be far more than there are.
    if (!taken_.add(at, name.size() + 1)) {
      file_.fail(names_offset_ + at, "a name shares bytes with another, expected its own");
    }
    return name;
  }

 public:
  [[noreturn]] static void refuse_link(const Hdf5File& file, std::uint64_t offset,
                                       const std::string& name) {
    file.refuse(offset, "'" + excerpt(name) + "' is a link to a name, expected it here");
  }

 private:
  Hdf5File& file_;
  std::uint64_t names_offset_ = 0;
  std::string names_;
  Claims taken_;
  std::vector<Hdf5Link> links_;
};

Hdf5Link parse_link(const Hdf5File& file, std::uint64_t offset, std::string_view bytes) {
  Hdf5Fields in(file, offset, bytes, "a link");
  in.version(1, 1);
  const std::uint64_t flags = in.number(1);
  const std::uint64_t type = flags & 8u ? in.number(1) : kHardLinkType;
  if (flags & 4u) in.skip(8);   // when it was made
  if (flags & 16u) in.skip(1);  // the character set
  const std::uint64_t size = in.number(std::size_t{1} << (flags & 3u));
  Hdf5Link link{.name = std::string(in.bytes(size)), .address = kNoAddress};
  if (type != kHardLinkType) SymbolTables::refuse_link(file, offset, link.name);
  link.address = in.address();
  return link;
}

std::vector<Hdf5Link> read_indexed_links(Hdf5File& file, std::uint64_t heap_address,
                                         std::uint64_t tree_address) {
  FractalHeap heap(file, heap_address);
  std::vector<Hdf5Link> links;
  for (const std::string& record :
       read_btree2(file, tree_address, kLinksByName, kHashBytes + heap.id_bytes())) {
    const FractalHeap::Object found = heap.find(std::string_view(record).substr(kHashBytes));
    links.push_back(parse_link(file, found.offset, found.bytes));
  }
  std::sort(links.begin(), links.end(),
            [](const Hdf5Link& a, const Hdf5Link& b) { return a.name < b.name; });
  return links;
}

std::vector<Hdf5Link> read_new_links(Hdf5File& file, const Hdf5Object& group) {
  const Hdf5Message* const info = group.find(Hdf5MessageType::kLinkInfo);
  Hdf5Fields in(file, info->offset, info->bytes, "a link info message");
  in.version(0, 0);
  if (in.number(1) & 1u) in.skip(8);  // the largest index of creation
  const std::uint64_t heap = in.address(), tree = in.address();
  if (heap != kNoAddress) return read_indexed_links(file, heap, tree);
  std::vector<Hdf5Link> links;
  for (const Hdf5Message& one : group.messages) {
    if (one.type != Hdf5MessageType::kLink) continue;
    links.push_back(parse_link(file, one.offset, one.bytes));
  }
  return links;
}

}  // namespace

std::vector<Hdf5Link> read_links(Hdf5File& file, const Hdf5Object& group) {
  if (!group.is_group()) file.fail(group.address, "an object is no group, expected one");
  const Hdf5Message* const old = group.find(Hdf5MessageType::kSymbolTable);
  std::vector<Hdf5Link> links =
      old ? SymbolTables(file, *old).links() : read_new_links(file, group);
  std::unordered_set<std::string_view> names;
  for (const Hdf5Link& link : links) {
    const char* const fault = link.name.empty()                       ? "is empty"
                              : link.name.size() > kMaxHdf5Name       ? "is too long"
                              : !is_printable_utf8(link.name)         ? "is not printable UTF-8"
                              : link.name.find('/') != link.name.npos ? "holds a '/'"
                              : !names.insert(link.name).second       ? "is there twice"
                                                                      : nullptr;
    if (fault) {
      file.fail(group.address, message("the name '", excerpt(link.name), "' in a group ", fault,
                                       ", expected unequal names of printable UTF-8"));
    }
  }
  return links;
}

}  // namespace openrnn::formats
