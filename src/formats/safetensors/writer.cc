#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/file/atomic_file.h"
#include "formats/safetensors/dtypes.h"
#include "formats/tensors/contents.h"

namespace openrnn {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kSuffix = ".safetensors";

// The order of the safetensors package: large elements first, so that all are aligned, then names.
std::vector<const NamedView*> in_file_order(std::span<const NamedView> tensors) {
  std::vector<const NamedView*> sorted;
  for (const NamedView& tensor : tensors) sorted.push_back(&tensor);
  // Of equal size the package goes by its list of types, whose order is that of our table.
  const auto before = [](const NamedView* a, const NamedView* b) {
    const formats::SafetensorsType* const x = &formats::safetensors_type_of(a->values.dtype);
    const formats::SafetensorsType* const y = &formats::safetensors_type_of(b->values.dtype);
    return x != y ? x > y : a->name < b->name;
  };
  std::sort(sorted.begin(), sorted.end(), before);
  return sorted;
}

std::string header_of(const std::vector<const NamedView*>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  ordered_json header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const NamedView* tensor : tensors) {
    const std::uint64_t end = offset + tensor->values.size_bytes();
    // push_back: operator[] of an ordered object looks through all of it.
    ordered_json::object_t entry;
    entry.push_back({"dtype", formats::safetensors_type_of(tensor->values.dtype).code});
    entry.push_back({"shape", tensor->values.shape});
    entry.push_back({"data_offsets", {offset, end}});
    header.get_ref<ordered_json::object_t&>().push_back({tensor->name, std::move(entry)});
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begin at a multiple of 8
  return text;
}

void write_one(const std::string& path, const std::vector<const NamedView*>& tensors,
               const std::map<std::string, std::string>& metadata) {
  const std::string header = header_of(tensors, metadata);
  formats::replace_file(path, [&](formats::OutputFile& file) {
    const std::uint64_t length = header.size();
    file.write(&length, sizeof length);
    file.write(header);
    for (const NamedView* tensor : tensors) {
      file.write(tensor->values.data, tensor->values.size_bytes());
    }
  });
}

// In the given order, each of at most `most` bytes but for a larger tensor.
std::vector<std::vector<const NamedView*>> shards_of(std::span<const NamedView> tensors,
                                                     std::uint64_t most) {
  std::vector<std::vector<const NamedView*>> shards(1);
  std::uint64_t bytes = 0;
  for (const NamedView& tensor : tensors) {
    const std::uint64_t more = tensor.values.size_bytes();
    if (!shards.back().empty() && (bytes > most || more > most - bytes)) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(&tensor);
    bytes += more;
  }
  return shards;
}

std::string five_digits(std::size_t number) {
  const std::string digits = message(number);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

void refuse_existing(const std::string& path) {
  if (!formats::file_exists(path)) return;
  throw ArgumentError(message("[write_safetensors] '", path,
                              "' is there already, expected a new name: several files cannot be "
                              "replaced in one step"));
}

void write_shards(const std::string& path, std::span<const NamedView> tensors,
                  const SafetensorsOptions& options) {
  if (!path.ends_with(kSuffix)) {
    throw ArgumentError(message("[write_safetensors] path is '", excerpt(path),
                                "', expected one that ends in ", kSuffix, " where it is sharded"));
  }
  const std::string stem = path.substr(0, path.size() - kSuffix.size());
  const std::string index_path = path + ".index.json";
  const auto shards = shards_of(tensors, options.max_shard_bytes);
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    paths.push_back(
        message(stem, "-", five_digits(i + 1), "-of-", five_digits(shards.size()), kSuffix));
    refuse_existing(paths.back());
  }
  refuse_existing(index_path);
  ordered_json::object_t map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    std::vector<NamedView> views;
    for (const NamedView* tensor : shards[i]) {
      map.push_back({tensor->name, paths[i].substr(paths[i].rfind('/') + 1)});
      total += tensor->values.size_bytes();
      views.push_back(*tensor);
    }
    write_one(paths[i], in_file_order(views), options.metadata);
  }
  ordered_json index = {{"metadata", {{"total_size", total}}}};
  index["weight_map"] = std::move(map);
  // Last: without it the shards are not looked at.
  write_file_atomically(index_path, index.dump(2) + "\n");
}

}  // namespace

void write_safetensors(const std::string& path, std::span<const NamedView> tensors,
                       const SafetensorsOptions& options) {
  formats::check_named_views("write_safetensors", tensors);
  for (const NamedView& tensor : tensors) {
    formats::safetensors_type_of(tensor.values.dtype);
    if (tensor.name == "__metadata__") {
      throw ArgumentError(
          "[write_safetensors] a tensor is named '__metadata__', expected another name");
    }
  }
  for (const auto& [key, value] : options.metadata) {
    if (is_printable_utf8(key) && is_valid_utf8(value)) continue;
    throw ArgumentError(message("[write_safetensors] the metadata '", excerpt(key), "' is '",
                                excerpt(value), "', expected a printable key and UTF-8"));
  }
  if (options.max_shard_bytes) {
    write_shards(path, tensors, options);
  } else {
    write_one(path, in_file_order(tensors), options.metadata);
  }
}

}  // namespace openrnn
