#include <map>

#include "base/crc/crc32c.h"
#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/bundle/bundle.h"
#include "formats/bundle/exchange.h"
#include "formats/file/atomic_file.h"
#include "formats/table/table.h"
#include "formats/tf_dtype.h"

namespace openrnn {

using formats::OutputFile;

struct TensorBundleWriter::Impl {
  explicit Impl(const std::string& prefix) : paths(prefix) {
    // An unfinished earlier save may be the only complete pair: put it in place first.
    const formats::Descriptor lock = formats::settle(paths);
    data.emplace(paths.new_data);
    formats::unlock(lock);
  }

  void add(const std::string& name, int dtype, const Shape& shape, std::string_view bytes,
           std::uint32_t crc);

  formats::PairPaths paths;
  std::optional<OutputFile> data;
  std::uint64_t offset = 0;
  std::map<std::string, std::string> index;
  bool closed = false;  // finished or failed
};

void TensorBundleWriter::Impl::add(const std::string& name, int dtype, const Shape& shape,
                                   std::string_view bytes, std::uint32_t crc) {
  if (closed) throw StateError("[add] '" + excerpt(name) + "' after finish() or a failure");
  if (name.empty() || name[0] == '\0') {
    throw ArgumentError("[add] a tensor's name is empty or starts with a zero byte");
  }
  if (!is_printable_utf8(name)) {
    throw ArgumentError(message("[add] the tensor's name ", excerpt(name),
                                " is not UTF-8 or holds a control character, expected neither"));
  }
  formats::BundleEntry entry;
  entry.dtype = dtype;
  entry.shape = shape;
  entry.offset = static_cast<std::int64_t>(offset);
  entry.size = static_cast<std::int64_t>(bytes.size());
  entry.crc = mask_crc(crc);
  if (!index.emplace(name, formats::encode_entry(entry)).second) {
    throw ArgumentError(
        message("[add] '", excerpt(name), "' was added before, expected distinct names"));
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
  impl_->add(name, formats::to_tf_dtype(values.dtype), values.shape, bytes, crc32c(bytes));
}

void TensorBundleWriter::add(const std::string& name, const StringTensor& values) {
  const std::int64_t count = shape_size(values.shape);
  if (count != static_cast<std::int64_t>(values.values.size())) {
    throw ArgumentError(message("[add] '", excerpt(name), "' has ", values.values.size(),
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
  impl_->data->sync();
  OutputFile index(impl_->paths.new_index);
  index.write(formats::build_table(impl_->index));
  index.sync();
  const formats::FolderSync folder(impl_->paths.index);
  // From here on the new pair is complete, and a failed rename must not remove its files.
  impl_->data->keep();
  index.keep();
  formats::exchange(impl_->paths, folder);
  impl_->data.reset();
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
  for (const std::string& name : formats::names_in(folder)) {
    const std::string_view file = name;
    if (file.starts_with(start) && is_data_suffix(file.substr(start.size()))) {
      found.push_back(folder + "/" + name);
    }
  }
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
