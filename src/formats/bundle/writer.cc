#include <dirent.h>

#include <cerrno>
#include <map>

#include "base/message.h"
#include "formats/bundle/bundle.h"
#include "formats/bundle/exchange.h"
#include "formats/crc32c.h"
#include "formats/file/atomic_file.h"
#include "formats/table/table.h"
#include "formats/tf_dtype.h"

namespace openrnn {

using formats::OutputFile;

struct TensorBundleWriter::Impl {
  explicit Impl(const std::string& at) : prefix(at) {
    // An unfinished save of before may hold the only whole pair: first put it in its place.
    const std::string index_path = formats::index_path(prefix);
    if (formats::finish_exchange(prefix).index != index_path) {
      throw IoError(message("[TensorBundleWriter] the unfinished save at ", prefix,
                            " cannot be put in its place, expected a writable folder"));
    }
    formats::remove_file(formats::unfinished(index_path));
    data.emplace(formats::unfinished(formats::data_path(prefix, 0, 1)));
  }

  void add(const std::string& name, int dtype, const Shape& shape, std::string_view bytes,
           std::uint32_t crc);

  std::string prefix;
  std::optional<OutputFile> data;
  std::uint64_t offset = 0;
  std::map<std::string, std::string> index;
  bool closed = false;  // finished or failed
};

void TensorBundleWriter::Impl::add(const std::string& name, int dtype, const Shape& shape,
                                   std::string_view bytes, std::uint32_t crc) {
  if (closed) throw StateError("[add] '" + name + "' after finish() or a failure");
  if (name.empty() || name[0] == '\0') {
    throw ArgumentError("[add] a tensor's name is empty or starts with a zero byte");
  }
  formats::BundleEntry entry;
  entry.dtype = dtype;
  entry.shape = shape;
  entry.offset = static_cast<std::int64_t>(offset);
  entry.size = static_cast<std::int64_t>(bytes.size());
  entry.crc = formats::mask_crc(crc);
  if (!index.emplace(name, formats::encode_entry(entry)).second) {
    throw ArgumentError(message("[add] '", name, "' was added before, expected distinct names"));
  }
  closed = true;  // until the write has succeeded
  data->write(bytes);
  closed = false;
  offset += bytes.size();
}

TensorBundleWriter::TensorBundleWriter(const std::string& prefix) : impl_(new Impl(prefix)) {}
TensorBundleWriter::~TensorBundleWriter() = default;
TensorBundleWriter::TensorBundleWriter(TensorBundleWriter&&) noexcept = default;
TensorBundleWriter& TensorBundleWriter::operator=(TensorBundleWriter&&) noexcept = default;

void TensorBundleWriter::add(const std::string& name, const ConstArrayView& values) {
  const std::string_view bytes(static_cast<const char*>(values.data), values.size_bytes());
  impl_->add(name, formats::to_tf_dtype(values.dtype), values.shape, bytes, formats::crc32c(bytes));
}

void TensorBundleWriter::add(const std::string& name, const StringTensor& values) {
  const std::int64_t count = shape_size(values.shape);
  if (count != static_cast<std::int64_t>(values.values.size())) {
    throw ArgumentError(message("[add] '", name, "' has ", values.values.size(),
                                " strings, expected ", count, " for the shape ",
                                to_string(values.shape)));
  }
  std::uint32_t crc = 0;
  const std::string bytes = formats::encode_strings(values.values, &crc);
  impl_->add(name, formats::kTfString, values.shape, bytes, crc);
}

void TensorBundleWriter::add(const NamedTensor& tensor) {
  std::visit([&](const auto& value) { add(tensor.name, value); }, tensor.value);
}

void TensorBundleWriter::add_string(const std::string& name, std::string_view value) {
  add(name, StringTensor{{}, {std::string(value)}});
}

void TensorBundleWriter::finish() {
  if (impl_->closed) throw StateError("[finish] called after finish() or a failure, expected once");
  impl_->closed = true;
  impl_->index.emplace("", formats::encode_header(1));
  impl_->data->sync_and_close();
  OutputFile index(formats::unfinished(formats::index_path(impl_->prefix)));
  index.write(formats::build_table(impl_->index));
  index.sync_and_close();
  // From here on the new pair is whole, and a failed rename must not remove what is left of it.
  impl_->data->keep();
  index.keep();
  formats::exchange(impl_->prefix);
}

void write_tensor_bundle(const std::string& prefix, std::span<const NamedTensor> tensors) {
  TensorBundleWriter writer(prefix);
  for (const NamedTensor& tensor : tensors) writer.add(tensor);
  writer.finish();
}

bool tensor_bundle_exists(const std::string& prefix) {
  const std::string index = formats::index_path(prefix);
  return formats::file_exists(index) || formats::file_exists(formats::unfinished(index));
}

namespace {

// "data-00000-of-00001" and the like, also unfinished.
bool is_data_suffix(std::string_view suffix) {
  if (suffix.ends_with(formats::kUnfinishedSuffix)) {
    suffix.remove_suffix(formats::kUnfinishedSuffix.size());
  }
  constexpr std::string_view kPattern = "data-#####-of-#####";
  if (suffix.size() != kPattern.size()) return false;
  for (std::size_t i = 0; i < suffix.size(); ++i) {
    const bool digit = suffix[i] >= '0' && suffix[i] <= '9';
    if (kPattern[i] == '#' ? !digit : suffix[i] != kPattern[i]) return false;
  }
  return true;
}

std::vector<std::string> data_files(const std::string& prefix) {
  const std::string folder = formats::folder_of(prefix);
  const std::string start = prefix.substr(prefix.rfind('/') + 1) + ".";
  std::vector<std::string> found;
  DIR* listing = ::opendir(folder.c_str());
  if (!listing) {
    if (errno == ENOENT) return found;
    formats::throw_io_error("list", folder, errno);
  }
  while (const dirent* item = ::readdir(listing)) {
    const std::string_view name = item->d_name;
    if (name.starts_with(start) && is_data_suffix(name.substr(start.size()))) {
      found.push_back(folder + "/" + item->d_name);
    }
  }
  ::closedir(listing);
  return found;
}

}  // namespace

void remove_tensor_bundle(const std::string& prefix) {
  const std::string index = formats::index_path(prefix);
  const std::vector<std::string> data = data_files(prefix);
  formats::remove_file(formats::unfinished(index));
  formats::remove_file(index);
  for (const std::string& path : data) formats::remove_file(path);
}

}  // namespace openrnn
