// What torch.save wrote before version 1.6: five pickles one after another (a magic number, a
// version, the machine, the object, the keys of its storages), then the storages in the order of
// the keys, each its number of elements in 8 bytes and its elements.
#include <algorithm>
#include <unordered_map>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/torch/objects.h"
#include "formats/torch/torch_file.h"

namespace openrnn::formats {

namespace {

using namespace std::string_view_literals;

// 0x1950a86a20f9469cfc6c as a pickle writes it, after the protocol.
constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;
constexpr std::int64_t kLegacyVersion = 1001;

// A pickle, and the bytes that it points into.
struct OwnedPickle {
  std::unique_ptr<std::string> bytes;
  Pickle pickle;
};

// How long a pickle is only its end tells: twice as much is read until it is there.
OwnedPickle read_pickle(const ByteSource& file, std::uint64_t* offset) {
  const std::uint64_t rest = file.size() - *offset;
  for (std::uint64_t size = std::min(rest, std::uint64_t{1} << 16);;
       size = std::min(rest, size * 2)) {
    auto bytes = std::make_unique<std::string>(file.read_string(*offset, size));
    if (std::optional<Pickle> pickle = parse_pickle(file.path(), *offset, *bytes)) {
      *offset += pickle->bytes.size();
      return {std::move(bytes), std::move(*pickle)};
    }
    if (size == rest) {
      throw FormatError(file.path(), file.size(), "the file ends inside a pickle, expected more");
    }
  }
}

void read_version(const ByteSource& file, std::uint64_t* offset) {
  const OwnedPickle version = read_pickle(file, offset);
  const PickleNode& node = version.pickle.node(version.pickle.root);
  if (node.kind == PickleKind::kInt && node.integer() == kLegacyVersion) return;
  version.pickle.fail(0, message("the version of the file is not ", kLegacyVersion));
}

// The element size of each storage, which its own record does not tell.
std::unordered_map<std::string_view, std::uint64_t> element_sizes(const TorchObjects& objects) {
  std::unordered_map<std::string_view, std::uint64_t> sizes;
  for (const TorchTensor& tensor : objects.tensors) {
    sizes.emplace(tensor.storage.key, tensor.storage.element_bytes);
  }
  return sizes;
}

using ExtentNumbers = std::unordered_map<std::string_view, std::size_t>;

// The storages, which end where the file does.
ExtentNumbers find_storages(const ByteSource& file, const Pickle& keys, std::uint64_t offset,
                            const std::unordered_map<std::string_view, std::uint64_t>& sizes,
                            FileContents* contents) {
  ExtentNumbers numbers;
  const PickleNode& list = keys.node(keys.root);
  if (list.kind != PickleKind::kList) keys.fail(0, "the keys of storages are no list");
  keys.each_item(list, [&](PickleId id) {
    const PickleNode& node = keys.node(id);
    if (node.kind != PickleKind::kString) keys.fail(node.at, "the key of a storage is no string");
    const std::string_view key = keys.text(node);
    const auto size = sizes.find(key);
    if (size == sizes.end()) {
      keys.fail(node.at, "storage '" + excerpt(key) + "' is of no tensor, expected one");
    }
    std::uint64_t elements = 0, bytes = 0;
    file.read_at(offset, &elements, sizeof elements);
    offset += sizeof elements;
    if (__builtin_mul_overflow(elements, size->second, &bytes) || bytes > file.size() - offset) {
      throw FormatError(file.path(), offset - sizeof elements,
                        message("storage '", excerpt(key), "' has ", elements, " elements of ",
                                size->second, " bytes, expected it to end inside the file"));
    }
    if (!numbers.emplace(size->first, contents->extents.size()).second) {
      keys.fail(node.at, "storage '" + excerpt(key) + "' is there twice, expected once");
    }
    contents->extents.push_back({&file, offset, bytes, {}});
    offset += bytes;
    return true;
  });
  if (offset != file.size()) {
    throw FormatError(
        file.path(), offset,
        message("the storages end here, expected the end of the file at ", file.size()));
  }
  return numbers;
}

void place(const Pickle& pickle, TorchTensor tensor, const ExtentNumbers& numbers,
           FileContents* contents) {
  const auto found = numbers.find(tensor.storage.key);
  if (found == numbers.end()) {
    pickle.fail(tensor.storage.at, "a tensor has storage '" + excerpt(tensor.storage.key) +
                                       "', expected one of those that follow");
  }
  const TorchStorage& storage = tensor.storage;
  const std::uint64_t stored = contents->extents[found->second].bytes;
  if (storage.before > stored || storage.bytes > stored - storage.before) {
    pickle.fail(storage.at,
                message("a tensor has ", storage.bytes, " bytes from byte ", storage.before,
                        " of a storage of ", stored, ", expected it inside"));
  }
  contents->places.push_back({.extent = found->second,
                              .first = storage.before + tensor.first,
                              .element_bytes = tensor.element_bytes,
                              .strides = std::move(tensor.strides)});
  contents->tensors.push_back(std::move(tensor.info));
}

}  // namespace

bool starts_as_legacy_torch(std::string_view head) {
  return head.starts_with('\x80') && head.size() > 2 && head.substr(2).starts_with(kMagic);
}

FileContents read_torch_legacy(std::unique_ptr<ByteSource> file) {
  std::uint64_t offset = 2 + kMagic.size();
  read_version(*file, &offset);
  read_pickle(*file, &offset);  // sizes of C types on the machine that wrote it
  const OwnedPickle object = read_pickle(*file, &offset);
  TorchObjects objects = torch_objects(object.pickle, "");
  const OwnedPickle keys = read_pickle(*file, &offset);
  FileContents contents;
  contents.kind = FileKind::kTorchLegacy;
  const ExtentNumbers numbers =
      find_storages(*file, keys.pickle, offset, element_sizes(objects), &contents);
  for (TorchTensor& tensor : objects.tensors) {
    place(object.pickle, std::move(tensor), numbers, &contents);
  }
  contents.values = std::move(objects.values);
  contents.sources.push_back(std::move(file));
  return contents;
}

}  // namespace openrnn::formats
