// The archive: one pickle, and one entry for each storage.
#include <algorithm>
#include <unordered_map>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/torch/objects.h"
#include "formats/torch/torch_file.h"

namespace openrnn::formats {

namespace {

constexpr std::string_view kPickleName = "data.pkl", kConstantsName = "constants.pkl";

// Several tensors may share a storage, which is one extent then.
class StorageExtents {
 public:
  StorageExtents(const ZipArchive& archive, std::string folder, const Pickle& pickle,
                 FileContents* contents)
      : archive_(archive), folder_(std::move(folder)), pickle_(pickle), contents_(contents) {}

  std::size_t find(const TorchStorage& storage) {
    const std::string name = folder_ + std::string(storage.key);
    const auto [known, is_new] = numbers_.emplace(name, contents_->extents.size());
    if (is_new) add(name, storage);
    const Extent& extent = contents_->extents[known->second];
    if (extent.bytes != storage.bytes) {
      pickle_.fail(storage.at,
                   message("a tensor has a storage of ", storage.bytes, " bytes, expected ",
                           extent.bytes, " as '", excerpt(name), "' has"));
    }
    return known->second;
  }

 private:
  void add(const std::string& name, const TorchStorage& storage) {
    const ZipEntry* entry = archive_.find(name);
    if (!entry) {
      pickle_.fail(storage.at,
                   "a tensor is in '" + excerpt(name) + "', expected an entry of that name");
    }
    archive_.require_stored(*entry);
    contents_->extents.push_back({&archive_.file(), entry->offset, entry->bytes, {}});
    if (archive_.has_checksums()) contents_->extents.back().crc = entry->crc;
  }

  const ZipArchive& archive_;
  std::string folder_;
  const Pickle& pickle_;
  FileContents* contents_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

const ZipEntry& need(const ZipArchive& archive, const std::string& name) {
  if (const ZipEntry* entry = archive.find(name)) return *entry;
  throw FormatError(archive.file().path(), 0,
                    "the archive has no '" + excerpt(name) + "', expected one");
}

// The tensors of one pickle, whose storages are in `folder`.
void add_pickle(const ZipArchive& archive, const std::string& name, const std::string& folder,
                const std::string& prefix, FileContents* contents) {
  const ZipEntry& entry = need(archive, name);
  const std::string bytes = archive.read(entry);
  const std::optional<Pickle> pickle = parse_pickle(archive.file().path(), entry.offset, bytes);
  if (!pickle) {
    throw FormatError(archive.file().path(), entry.offset + entry.bytes,
                      "the pickle '" + excerpt(name) + "' does not end, expected its end");
  }
  TorchObjects objects = torch_objects(*pickle, prefix);
  StorageExtents extents(archive, folder, *pickle, contents);
  for (TorchTensor& tensor : objects.tensors) {
    contents->places.push_back({.extent = extents.find(tensor.storage),
                                .first = tensor.first,
                                .element_bytes = tensor.element_bytes,
                                .strides = std::move(tensor.strides)});
    contents->tensors.push_back(std::move(tensor.info));
  }
  std::move(objects.values.begin(), objects.values.end(), std::back_inserter(contents->values));
}

void require_little_endian(const ZipArchive& archive, const std::string& root) {
  const ZipEntry* entry = archive.find(root + "byteorder");
  // Older files have none, and are little-endian.
  if (!entry || archive.read(*entry) == "little") return;
  throw UnsupportedError(message("[", excerpt(archive.file().path()), " @ ", entry->offset,
                                 "] byteorder is '", excerpt(archive.read(*entry)),
                                 "', expected little"));
}

}  // namespace

std::optional<std::string> find_torch_root(const ZipArchive& archive) {
  std::optional<std::string> root;
  for (const ZipEntry& entry : archive.entries()) {
    const std::size_t slash = entry.name.find('/');
    if (slash == std::string::npos || entry.name.substr(slash + 1) != kPickleName) continue;
    if (root) return std::nullopt;
    root = entry.name.substr(0, slash + 1);
  }
  return root;
}

FileKind kind_of_torch_zip(const ZipArchive& archive, const std::string& root) {
  return archive.find(root + std::string(kConstantsName)) ? FileKind::kTorchScript
                                                          : FileKind::kTorch;
}

FileContents read_torch_zip(std::unique_ptr<ByteSource> file) {
  const ZipArchive archive(*file);
  const std::optional<std::string> root = find_torch_root(archive);
  if (!root) throw FormatError(file->path(), 0, "the archive has no NAME/data.pkl, expected one");
  require_little_endian(archive, *root);
  FileContents contents;
  contents.kind = kind_of_torch_zip(archive, *root);
  add_pickle(archive, *root + std::string(kPickleName), *root + "data/", "", &contents);
  if (contents.kind == FileKind::kTorchScript) {
    // TorchScript's own name for them.
    add_pickle(archive, *root + std::string(kConstantsName), *root + "constants/", "CONSTANTS",
               &contents);
  }
  contents.sources.push_back(std::move(file));
  return contents;
}

}  // namespace openrnn::formats
