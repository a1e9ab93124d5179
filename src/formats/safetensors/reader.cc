#include "formats/safetensors/reader.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/safetensors/dtypes.h"
#include "formats/safetensors/header.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kLengthBytes = 8;

std::uint64_t header_length(const ByteSource& file) {
  std::uint64_t length = 0;
  file.read_at(0, &length, sizeof length);
  if (length > kMaxSafetensorsHeader) {
    throw FormatError(
        file.path(), 0,
        message("the header has ", length, " bytes, expected at most ", kMaxSafetensorsHeader));
  }
  return length;
}

// In the order of their bytes, each of which belongs to one tensor.
void check_tiling(const ByteSource& file, std::uint64_t data_offset,
                  std::vector<HeaderTensor>* tensors) {
  std::stable_sort(tensors->begin(), tensors->end(),
                   [](const HeaderTensor& a, const HeaderTensor& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  std::uint64_t end = 0;
  for (const HeaderTensor& tensor : *tensors) {
    if (tensor.begin != end || tensor.end < tensor.begin) {
      throw FormatError(
          file.path(), kLengthBytes,
          message("tensor '", excerpt(tensor.name), "' has bytes ", tensor.begin, " to ",
                  tensor.end, ", expected it to begin at ", end, ", where the one before it ends"));
    }
    end = tensor.end;
  }
  if (end != file.size() - data_offset) {
    throw FormatError(file.path(), kLengthBytes,
                      message("the tensors have ", end, " bytes, expected ",
                              file.size() - data_offset, ", as follow the header"));
  }
}

void check_size(const ByteSource& file, const HeaderTensor& tensor, const SafetensorsType& type) {
  const std::optional<std::uint64_t> elements = element_count(tensor.shape);
  std::uint64_t bits = 0;
  if (!elements || __builtin_mul_overflow(*elements, std::uint64_t{type.bits}, &bits)) {
    throw FormatError(file.path(), kLengthBytes,
                      message("tensor '", excerpt(tensor.name), "' has impossible shape ",
                              excerpt(to_string(tensor.shape))));
  }
  if (bits % 8 == 0 && bits / 8 == tensor.end - tensor.begin) return;
  throw FormatError(file.path(), kLengthBytes,
                    message("tensor '", excerpt(tensor.name), "' has ", tensor.end - tensor.begin,
                            " bytes, expected ", *elements, " elements of ", type.bits,
                            " bits, a whole number of bytes"));
}

void add_tensor(const ByteSource& file, std::uint64_t data_offset, HeaderTensor tensor,
                FileContents* contents) {
  const SafetensorsType* type = find_safetensors_type(tensor.dtype);
  if (type) check_size(file, tensor, *type);
  contents->tensors.push_back({.name = std::move(tensor.name),
                               .dtype = std::string(type ? type->name : tensor.dtype),
                               .shape = std::move(tensor.shape),
                               .bytes = tensor.end - tensor.begin});
  contents->places.push_back({.extent = contents->extents.size()});
  contents->extents.push_back(
      {&file, data_offset + tensor.begin, tensor.end - tensor.begin, std::nullopt});
}

// A shard's tensors join those of the index, which says that they are there.
void join(const std::string& index_path, const std::string& shard_name, FileContents shard,
          const std::unordered_map<std::string_view, std::string_view>& files,
          FileContents* whole) {
  for (std::size_t i = 0; i < shard.tensors.size(); ++i) {
    const auto found = files.find(shard.tensors[i].name);
    if (found == files.end() || found->second != shard_name) {
      throw FormatError(shard.sources[0]->path(), kLengthBytes,
                        message("tensor '", excerpt(shard.tensors[i].name),
                                "' is not in this file by the index ", excerpt(index_path)));
    }
    whole->tensors.push_back(std::move(shard.tensors[i]));
    whole->places.push_back({.extent = whole->extents.size()});
    whole->extents.push_back(shard.extents[shard.places[i].extent]);
  }
  for (auto& source : shard.sources) whole->sources.push_back(std::move(source));
  for (NamedValue& value : shard.values) whole->values.push_back(std::move(value));
}

// Most writers put the same metadata into every shard.
void drop_repeated_values(FileContents* contents) {
  std::set<std::pair<std::string, PlainValue>> seen;
  std::erase_if(contents->values, [&](const NamedValue& value) {
    return !seen.emplace(value.name, value.value).second;
  });
}

}  // namespace

FileContents read_safetensors(std::unique_ptr<ByteSource> owned) {
  const ByteSource& file = *owned;
  const std::uint64_t length = header_length(file), data_offset = kLengthBytes + length;
  SafetensorsHeader header =
      parse_safetensors_header(file.path(), kLengthBytes, file.read_string(kLengthBytes, length));
  check_tiling(file, data_offset, &header.tensors);
  FileContents contents;
  contents.kind = FileKind::kSafetensors;
  for (HeaderTensor& tensor : header.tensors) {
    add_tensor(file, data_offset, std::move(tensor), &contents);
  }
  for (auto& [name, value] : header.metadata) {
    contents.values.push_back({std::move(name), std::move(value)});
  }
  contents.sources.push_back(std::move(owned));
  return contents;
}

FileContents read_safetensors_index(const ByteSource& file, const SourceOpener& open) {
  if (file.size() > kMaxSafetensorsHeader) {
    throw FormatError(
        file.path(), 0,
        message("the index has ", file.size(), " bytes, expected at most ", kMaxSafetensorsHeader));
  }
  SafetensorsIndex index = parse_safetensors_index(file.path(), file.read_string(0, file.size()));
  FileContents contents;
  contents.kind = FileKind::kSafetensorsIndex;
  for (auto& [name, value] : index.metadata) {
    contents.values.push_back({std::move(name), std::move(value)});
  }
  std::unordered_map<std::string_view, std::string_view> files;
  std::vector<std::string_view> shards;
  for (const auto& [tensor, shard] : index.weight_map) {
    files.emplace(tensor, shard);
    shards.push_back(shard);
  }
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  for (const std::string_view shard : shards) {
    const std::string name(shard);
    join(file.path(), name, read_safetensors(open(name)), files, &contents);
  }
  drop_repeated_values(&contents);
  // Each is of the index, and a file has it once: as many are all of them.
  if (contents.tensors.size() == index.weight_map.size()) return contents;
  std::unordered_set<std::string_view> found;
  for (const TensorInfo& tensor : contents.tensors) found.insert(tensor.name);
  for (const auto& [tensor, shard] : index.weight_map) {
    if (found.count(tensor)) continue;
    throw FormatError(file.path(), 0,
                      message("tensor '", excerpt(tensor), "' is not in '", excerpt(shard),
                              "', expected it there"));
  }
  return contents;
}

}  // namespace openrnn::formats
