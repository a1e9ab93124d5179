#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/crc/crc32c.h"
#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/runtime_file.h"
#include "runtime/model_file/file_bytes.h"
#include "runtime/model_file/header.h"
#include "spec/json.h"

namespace openrnn {

namespace {

using runtime::FileHeader;
using runtime::FileTensor;

std::string_view chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::string* find_metadata(const FileHeader& header, std::string_view key) {
  for (const auto& [name, value] : header.metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

// The elements where they lie, of that floating type and shape.
ConstArrayView view_of(const JsonScanner& json, const std::string& name, const FileTensor& tensor,
                       Shape shape, std::optional<DType> dtype) {
  const bool is_right = tensor.dtype && is_floating(*tensor.dtype) && tensor.dtype == dtype;
  if (!is_right || tensor.shape != shape) {
    json.fail(message("tensor '", excerpt(name), "' is ",
                      tensor.dtype ? dtype_name(*tensor.dtype) : "of another type", " ",
                      excerpt(to_string(tensor.shape)), ", expected ",
                      dtype && is_floating(*dtype) ? dtype_name(*dtype) : "floating point", " ",
                      to_string(shape)));
  }
  if (reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % dtype_size(*dtype) != 0) {
    json.fail(message("tensor '", excerpt(name), "' is not at a multiple of ", dtype_size(*dtype),
                      " bytes, expected it there"));
  }
  return {tensor.bytes.data(), *dtype, std::move(shape)};
}

}  // namespace

struct NetworkFile::Impl {
  Impl(std::string from, std::unique_ptr<runtime::FileBytes> of)
      : path(std::move(from)), bytes(std::move(of)) {
    read();
  }

  void read();
  std::int64_t version(std::string_view key) const;
  void read_networks(const std::string& text);
  StoredNetwork read_network(JsonScanner& json);
  void add_part(const JsonScanner& json, const std::string& key, StoredNetwork* network);

  std::string path;
  std::unique_ptr<runtime::FileBytes> bytes;
  FileHeader header;
  std::vector<StoredNetwork> networks;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> others;
  std::int64_t arithmetic = 0;
  /// By the name of the tensor.
  std::map<std::string, std::uint32_t, std::less<>> checksums;
};

std::int64_t NetworkFile::Impl::version(std::string_view key) const {
  const std::string* const text = find_metadata(header, key);
  std::int64_t value = 0;
  if (text) {
    const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error == std::errc() && stop == text->data() + text->size() && value > 0) return value;
  }
  throw FormatError(
      path, 0,
      message("the metadata have ", key, " ", text ? "'" + excerpt(*text) + "'" : "not at all",
              ", expected a version from 1 on"));
}

void NetworkFile::Impl::read() {
  header = runtime::read_header(path, bytes->all());
  const std::string* const text = find_metadata(header, runtime::kNetworksKey);
  if (!text) {
    throw FormatError(path, 0,
                      "this is a safetensors file without openrnn.networks in its "
                      "metadata, expected a file of OpenRNN");
  }
  const std::int64_t layout = version(runtime::kLayoutKey);
  if (layout > runtime::kLayoutVersion) {
    throw UnsupportedError(message("[NetworkFile] ", path, " has layout ", layout,
                                   ", expected at most ", runtime::kLayoutVersion,
                                   ": a later OpenRNN wrote it"));
  }
  arithmetic = version(runtime::kArithmeticKey);
  std::array<char, 16> sum{};
  std::snprintf(sum.data(), sum.size(), "%08x", crc32c(*text));
  const std::string* const stored = find_metadata(header, runtime::kChecksumKey);
  if (!stored || *stored != sum.data()) {
    throw FormatError(
        path, 0,
        message("openrnn.networks has the checksum ", sum.data(), ", expected openrnn.checksum, ",
                stored ? excerpt(*stored) : "which is not there"));
  }
  read_networks(*text);
  for (const auto& entry : header.metadata) {
    if (!entry.first.starts_with(runtime::kOwnPrefix)) metadata.push_back(entry);
  }
  for (const auto& [name, tensor] : header.tensors) {
    if (!checksums.contains(name)) others.push_back(name);
  }
}

void NetworkFile::Impl::read_networks(const std::string& text) {
  JsonScanner json(path, 0, text);
  std::set<std::string> names;
  json.array([&] {
    networks.push_back(read_network(json));
    const std::string& name = networks.back().name;
    if (!names.insert(name).second) {
      json.fail(message("the network '", excerpt(name), "' is there twice, expected once"));
    }
  });
  json.end();
}

StoredNetwork NetworkFile::Impl::read_network(JsonScanner& json) {
  StoredNetwork network;
  std::vector<std::pair<std::string, std::uint64_t>> parts;
  std::set<std::string> keys;
  json.object([&](const std::string& key) {
    if (!keys.insert(key).second) json.fail(message(excerpt(key), " twice, expected it once"));
    if (key == "name") {
      network.name = json.string();
    } else if (key == "spec") {
      network.spec = spec::spec_from_json(json);
    } else if (key == "crc32c") {
      json.object([&](const std::string& part) { parts.emplace_back(part, json.size()); });
    } else {
      json.fail(message("a network has '", excerpt(key), "', expected name, spec and crc32c"));
    }
  });
  if (keys.size() != 3) json.fail("a network has not all of name, spec and crc32c");
  for (const auto& [part, checksum] : parts) {
    if (checksum > UINT32_MAX) json.fail(message(checksum, ", expected a checksum of 32 bits"));
    add_part(json, part, &network);
    network.checksums.push_back(static_cast<std::uint32_t>(checksum));
    if (!checksums.emplace(network.tensors.back(), static_cast<std::uint32_t>(checksum)).second) {
      json.fail(message("tensor '", excerpt(network.tensors.back()),
                        "' is of two networks, expected one"));
    }
  }
  if (network.params.shape.empty()) {
    json.fail(message("the network '", excerpt(network.name), "' has no params"));
  }
  return network;
}

void NetworkFile::Impl::add_part(const JsonScanner& json, const std::string& key,
                                 StoredNetwork* network) {
  constexpr std::string_view kSlots = "slots/";
  const RnnSpec& spec = network->spec;
  const std::string name = network->name.empty() ? key : network->name + "/" + key;
  const auto found = header.tensors.find(name);
  if (found == header.tensors.end()) {
    json.fail(message("tensor '", excerpt(name), "' is not there, expected it"));
  }
  const FileTensor& tensor = found->second;
  const auto view = [&](Shape shape, std::optional<DType> dtype) {
    return view_of(json, name, tensor, std::move(shape), dtype);
  };
  const std::int64_t size = params_size(spec), rows = spec.num_pseudo_layers();
  if (key == "params") {
    network->params = view({size}, spec.dtype);
  } else if (key == "initial_h") {
    network->initial_h = view({rows, spec.hidden_size()}, spec.dtype);
  } else if (key == "initial_c" && spec.has_cell()) {
    network->initial_c = view({rows, spec.num_units}, spec.dtype);
  } else if (key.starts_with(kSlots)) {
    network->slots.emplace_back(key.substr(kSlots.size()), view({size}, tensor.dtype));
  } else {
    json.fail(message("the network '", excerpt(network->name), "' has '", excerpt(key),
                      "', expected params, initial_h, initial_c (of cells) or slots/NAME"));
  }
  network->tensors.push_back(name);
}

NetworkFile::NetworkFile(const std::string& path)
    : impl_(new Impl(path, std::make_unique<runtime::FileBytes>(path))) {}
NetworkFile::NetworkFile(std::span<const std::byte> bytes, const std::string& path)
    : impl_(new Impl(path, std::make_unique<runtime::FileBytes>(bytes))) {}
NetworkFile::~NetworkFile() = default;
NetworkFile::NetworkFile(NetworkFile&&) noexcept = default;
NetworkFile& NetworkFile::operator=(NetworkFile&&) noexcept = default;

const std::string& NetworkFile::path() const noexcept { return impl_->path; }
const std::vector<StoredNetwork>& NetworkFile::networks() const noexcept { return impl_->networks; }
const std::vector<std::pair<std::string, std::string>>& NetworkFile::metadata() const noexcept {
  return impl_->metadata;
}
const std::vector<std::string>& NetworkFile::other_tensors() const noexcept {
  return impl_->others;
}
std::int64_t NetworkFile::arithmetic_version() const noexcept { return impl_->arithmetic; }

const StoredNetwork& NetworkFile::network(std::string_view name) const {
  std::vector<std::string> names;
  for (const StoredNetwork& one : networks()) {
    if (one.name == name) return one;
    names.push_back("'" + one.name + "'");
  }
  throw ArgumentError(message("[NetworkFile] '", excerpt(name), "' is no network of ", path(),
                              ", expected one of: ", listed_excerpts(names)));
}

void NetworkFile::verify(const StoredNetwork& network) const {
  for (const std::string& name : network.tensors) {
    const std::span<const std::byte> bytes = impl_->header.tensors.find(name)->second.bytes;
    const std::uint32_t found = crc32c(chars(bytes)), stored = impl_->checksums.find(name)->second;
    if (found == stored) continue;
    const auto at = static_cast<std::uint64_t>(bytes.data() - impl_->bytes->all().data());
    throw FormatError(
        path(), at,
        message("tensor '", excerpt(name), "' has the checksum ", found, ", expected ", stored));
  }
}

namespace {

std::shared_ptr<const PackedModel> packed(const NetworkFile& file, std::string_view name,
                                          const ModelOptions& options) {
  const bool only = name.empty() && file.networks().size() == 1;
  const StoredNetwork& network = only ? file.networks()[0] : file.network(name);
  file.verify(network);
  return std::make_shared<const PackedModel>(network.spec, network.params, options);
}

}  // namespace

std::shared_ptr<const PackedModel> load_packed(const std::string& path, std::string_view name,
                                               const ModelOptions& options) {
  return packed(NetworkFile(path), name, options);
}
std::shared_ptr<const PackedModel> load_packed(std::span<const std::byte> bytes,
                                               std::string_view name, const ModelOptions& options) {
  return packed(NetworkFile(bytes), name, options);
}

}  // namespace openrnn
