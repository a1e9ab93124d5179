#include "formats/hdf5/image/image.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/message.h"
#include "formats/coding.h"
#include "formats/hdf5/image/encode.h"
#include "formats/hdf5/image/tree.h"
#include "formats/hdf5/structure/file.h"
#include "formats/hdf5/structure/objects.h"
#include "formats/tensors/contents.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kSuperblockBytes = 96;
// Entries of a symbol table, and what a B-tree has at least: the library's own.
constexpr std::size_t kSymbolsOfTable = 8;
constexpr std::uint16_t kLeastTreeHalf = 16;
constexpr std::uint64_t kNoFreeBlock = 1;
constexpr std::uint32_t kCachedGroup = 1;
constexpr std::uint64_t kLeastCollection = 4096;

/// Where a group's parts are, which its parent may keep.
struct Placed {
  std::uint64_t header = 0, tree = 0, heap = 0;
};

class ImageMaker {
 public:
  explicit ImageMaker(std::string_view call) : call_(call) {}

  Hdf5Image make(std::span<const NamedView> tensors, std::span<const NamedValue> values) {
    image_.metadata_offset = kSuperblockBytes;
    for (const NamedView& tensor : tensors) add_tensor(tensor);
    align(&image_.metadata_offset, 8);
    for (const NamedValue& value : values) add_image_value(call_, &root_, value);
    place_texts(values);
    std::size_t most = 0;
    count_children(root_, &most);
    const std::size_t half = most / kSymbolsOfTable / 2 + 1;
    if (half > INT16_MAX) {
      throw ArgumentError(message("[", call_, "] a group has ", most, " members, expected fewer"));
    }
    tree_half_ = std::max(kLeastTreeHalf, static_cast<std::uint16_t>(half));
    write_superblock(place_group(root_));
    return std::move(image_);
  }

 private:
  static void align(std::uint64_t* offset, std::uint64_t to) {
    *offset = (*offset + to - 1) / to * to;
  }

  void add_tensor(const NamedView& tensor) {
    ImageNode* const node = find_image_node(call_, &root_, tensor.name);
    if (!node->children.empty() || !node->is_group()) {
      fail_image(call_, tensor.name, "is a group, too, expected a dataset alone");
    }
    node->values = &tensor.values;
    if (tensor.values.dtype == DType::kBfloat16) {
      // Each has a string of its own in the heap.
      node->attributes.emplace_back("dtype", &bfloat16_.emplace_back(std::string("bfloat16")));
    }
    if (tensor.values.size_bytes() == 0) return;
    align(&image_.metadata_offset, kHdf5ElementAlignment);
    node->elements = image_.metadata_offset;
    image_.elements.push_back({node->elements, tensor.values});
    image_.metadata_offset += tensor.values.size_bytes();
  }

  // All strings are objects of one collection, at the front of the metadata.
  void place_texts(std::span<const NamedValue> values) {
    std::string objects;
    const auto add = [&](const PlainValue& value) {
      const auto* const text = std::get_if<std::string>(&value);
      // An empty string is in no heap.
      if (!text || text->empty() || text_numbers_.contains(&value)) return;
      const std::size_t number = text_numbers_.size() + 1;
      if (number > UINT16_MAX)
        fail_image(call_, *text, "is one string too many for one collection");
      text_numbers_[&value] = static_cast<std::uint16_t>(number);
      put_fixed(&objects, static_cast<std::uint16_t>(number));
      put_fixed(&objects, std::uint16_t{1});
      put_fixed(&objects, std::uint32_t{0});
      put_fixed(&objects, std::uint64_t{text->size()});
      objects += *text;
      pad8(&objects);
    };
    for (const NamedValue& value : values) add(value.value);
    for (const PlainValue& value : bfloat16_) add(value);
    if (objects.empty()) return;
    // Behind the objects what is free, as object 0.
    constexpr std::uint64_t kHead = 16;
    const std::uint64_t bytes = std::max(kLeastCollection, kHead + objects.size() + kHead);
    const std::uint64_t rest = bytes - kHead - objects.size();
    std::string collection = "GCOL";
    put_fixed(&collection, std::uint32_t{1});
    put_fixed(&collection, bytes);
    collection += objects;
    put_fixed(&collection, std::uint64_t{0});
    put_fixed(&collection, rest);
    collection.resize(bytes, '\0');
    text_heap_ = append(collection);
  }

  void count_children(const ImageNode& node, std::size_t* most) const {
    *most = std::max(*most, node.children.size());
    for (const auto& [name, child] : node.children) count_children(*child, most);
  }

  // The address of what is appended.
  std::uint64_t append(const std::string& bytes) {
    pad8(&image_.metadata);
    const std::uint64_t address = image_.metadata_offset + image_.metadata.size();
    image_.metadata += bytes;
    return address;
  }

  void add_attributes(const ImageNode& node, ObjectHeader* header) {
    for (const auto& [name, value] : node.attributes) {
      const auto number = text_numbers_.find(value);
      const bool in_heap = number != text_numbers_.end();
      std::string bytes = encode_attribute(name, *value, in_heap ? text_heap_ : 0,
                                           in_heap ? number->second : std::uint16_t{0});
      if (bytes.size() > kMaxHdf5Message) {
        fail_image(call_, name,
                   "is an attribute of more than 64 KB, expected lists that are shorter");
      }
      header->add(static_cast<std::uint16_t>(Hdf5MessageType::kAttribute), std::move(bytes));
    }
  }

  Placed place_dataset(const ImageNode& node) {
    ObjectHeader header;
    header.add(static_cast<std::uint16_t>(Hdf5MessageType::kDataspace),
               encode_shape(node.values->shape));
    header.add(static_cast<std::uint16_t>(Hdf5MessageType::kDatatype),
               encode_type(node.values->dtype));
    constexpr std::uint16_t kFillValue = 5;
    header.add(kFillValue, std::string("\2\2\2\0", 4));  // none
    std::string layout("\3\1", 2);
    put_fixed(&layout, node.elements);
    put_fixed(&layout, std::uint64_t{node.values->size_bytes()});
    header.add(static_cast<std::uint16_t>(Hdf5MessageType::kLayout), std::move(layout));
    add_attributes(node, &header);
    return {append(header.finish()), 0, 0};
  }

  Placed place_group(const ImageNode& node) {
    // By the bytes of the names, as a map has them.
    std::string names(8, '\0');  // the empty name, which is before all
    std::vector<std::string> tables;
    std::vector<std::uint64_t> keys{0};
    for (const auto& [name, child] : node.children) {
      const Placed placed = child->is_group() ? place_group(*child) : place_dataset(*child);
      if (tables.empty() || tables.back().size() == kSymbolsOfTable * kSymbolBytes) {
        tables.emplace_back();
        keys.push_back(0);
      }
      keys.back() = names.size();
      tables.back() += symbol(names.size(), placed, child->is_group());
      names += name + '\0';
      pad8(&names);
    }
    Placed placed;
    placed.tree = append(tree_node(tables, keys));
    placed.heap = append_heap(names);
    ObjectHeader header;
    std::string table;
    put_fixed(&table, placed.tree);
    put_fixed(&table, placed.heap);
    header.add(static_cast<std::uint16_t>(Hdf5MessageType::kSymbolTable), std::move(table));
    add_attributes(node, &header);
    placed.header = append(header.finish());
    return placed;
  }

  static constexpr std::size_t kSymbolBytes = 40;
  static std::string symbol(std::uint64_t name, const Placed& placed, bool is_group) {
    std::string out;
    put_fixed(&out, name);
    put_fixed(&out, placed.header);
    put_fixed(&out, is_group ? kCachedGroup : 0u);
    put_fixed(&out, std::uint32_t{0});
    put_fixed(&out, placed.tree);
    put_fixed(&out, placed.heap);
    return out;
  }

  // The only node: it is made as large as the largest group needs.
  std::string tree_node(const std::vector<std::string>& tables,
                        const std::vector<std::uint64_t>& keys) {
    std::string out("TREE\0\0", 6);
    put_fixed(&out, static_cast<std::uint16_t>(tables.size()));
    put_fixed(&out, kNoAddress);
    put_fixed(&out, kNoAddress);
    put_fixed(&out, keys[0]);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      std::string table("SNOD\1\0", 6);
      put_fixed(&table, static_cast<std::uint16_t>(tables[i].size() / kSymbolBytes));
      table += tables[i];
      table.resize(8 + kSymbolsOfTable * kSymbolBytes, '\0');
      put_fixed(&out, append(table));
      put_fixed(&out, keys[i + 1]);
    }
    out.resize(24 + (2u * tree_half_ + 1) * 8 + 2u * tree_half_ * 8, '\0');
    return out;
  }

  std::uint64_t append_heap(const std::string& names) {
    const std::uint64_t data = append(names);
    std::string head("HEAP\0\0\0\0", 8);
    put_fixed(&head, std::uint64_t{names.size()});
    put_fixed(&head, kNoFreeBlock);
    put_fixed(&head, data);
    return append(head);
  }

  void write_superblock(const Placed& root) {
    pad8(&image_.metadata);
    std::string& out = image_.superblock;
    out = kHdf5Signature;
    out.append(5, '\0');  // versions
    out += "\x08\x08";
    out += '\0';
    put_fixed(&out, static_cast<std::uint16_t>(kSymbolsOfTable / 2));
    put_fixed(&out, tree_half_);
    put_fixed(&out, std::uint32_t{0});
    put_fixed(&out, std::uint64_t{0});
    put_fixed(&out, kNoAddress);
    put_fixed(&out, image_.bytes());
    put_fixed(&out, kNoAddress);
    out += symbol(0, root, true);
  }

  std::string_view call_;
  Hdf5Image image_;
  ImageNode root_;
  std::deque<PlainValue> bfloat16_;  // they stay where they are
  std::map<const PlainValue*, std::uint16_t> text_numbers_;
  std::uint64_t text_heap_ = 0;
  std::uint16_t tree_half_ = kLeastTreeHalf;
};

}  // namespace

void Hdf5Image::write(const std::function<void(const void*, std::size_t)>& put) const {
  static constexpr char kZeros[kHdf5ElementAlignment] = {};
  std::uint64_t at = superblock.size();
  put(superblock.data(), superblock.size());
  const auto fill_to = [&](std::uint64_t offset) {
    put(kZeros, static_cast<std::size_t>(offset - at));
    at = offset;
  };
  for (const Elements& one : elements) {
    fill_to(one.offset);
    put(one.values.data, one.values.size_bytes());
    at += one.values.size_bytes();
  }
  fill_to(metadata_offset);
  put(metadata.data(), metadata.size());
}

Hdf5Image make_hdf5_image(std::string_view call, std::span<const NamedView> tensors,
                          std::span<const NamedValue> values) {
  check_named_views(call, tensors);
  return ImageMaker(call).make(tensors, values);
}

}  // namespace openrnn::formats
