#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/message.h"
#include "formats/bundle/exchange.h"
#include "formats/checkpoint_state.h"
#include "formats/file/byte_source.h"
#include "formats/objects/object_graph.h"
#include "formats/tensorflow/tensorflow.h"
#include "formats/tf_dtype.h"

namespace openrnn::formats {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSavedModel = "a SavedModel of TensorFlow";
constexpr const char* kCheckpoint = "a TensorFlow checkpoint";

// Bytes that are in the cache when their checksum is computed.
constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 18;

/// The elements of one tensor of a bundle, which compares their checksum.
class BundleTensorSource : public ByteSource {
 public:
  BundleTensorSource(std::shared_ptr<const Bundle> bundle, const std::string& prefix,
                     const TensorInfo& info)
      : bundle_(std::move(bundle)), path_(prefix), name_(info.name), bytes_(info.bytes) {}

  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size() const noexcept override { return bytes_; }
  void read_at(std::uint64_t offset, void* out, std::size_t count) const override {
    check_range(offset, count);
    if (offset == 0 && count == bytes_) {
      auto* to = static_cast<char*>(out);
      return visit(0, count, kAtOnce,
                   [&](std::string_view bytes) { to = std::copy(bytes.begin(), bytes.end(), to); });
    }
    const Array values = bundle_->read(name_, *bundle_->find(name_));
    if (count > 0) std::memcpy(out, static_cast<const char*>(values.data()) + offset, count);
  }
  void visit(std::uint64_t offset, std::uint64_t count, std::uint64_t at_once,
             const std::function<void(std::string_view bytes)>& visit) const override {
    if (offset == 0 && count == bytes_) {
      return bundle_->visit(name_, *bundle_->find(name_), at_once, visit);
    }
    ByteSource::visit(offset, count, at_once, visit);
  }
  // Kept, so that what is viewed stays where it is.
  std::string_view mapped() const override {
    const std::lock_guard lock(mutex_);
    if (!values_) values_.emplace(bundle_->read(name_, *bundle_->find(name_)));
    return {static_cast<const char*>(values_->data()), values_->size_bytes()};
  }

 private:
  std::shared_ptr<const Bundle> bundle_;
  std::string path_, name_;
  std::uint64_t bytes_;
  mutable std::mutex mutex_;
  mutable std::optional<Array> values_;
};

/// A scalar string, whose length is stored with it.
class BundleStringSource : public ByteSource {
 public:
  BundleStringSource(std::shared_ptr<const Bundle> bundle, const std::string& prefix,
                     const TensorInfo& info)
      : path_(prefix) {
    std::vector<std::string> strings =
        bundle->read_strings(info.name, *bundle->find(info.name)).values;
    if (strings.size() == 1) bytes_ = std::move(strings[0]);
  }
  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read_at(std::uint64_t offset, void* out, std::size_t count) const override {
    check_range(offset, count);
    if (count > 0) std::memcpy(out, bytes_.data() + offset, count);
  }
  std::string_view mapped() const override { return bytes_; }

 private:
  std::string path_, bytes_;
};

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::optional<FoundBundle> bundle_at(const std::string& prefix, const char* what) {
  if (!tensor_bundle_exists(prefix)) return std::nullopt;
  return FoundBundle{prefix, what};
}

std::optional<FoundBundle> bundle_in_folder(const std::string& folder) {
  if (const auto model = bundle_at(folder + "/variables/variables", kSavedModel)) return model;
  if (const auto model = bundle_at(folder + "/variables", kSavedModel)) return model;
  const std::optional<std::string> latest = latest_checkpoint_in(folder);
  return latest ? bundle_at(*latest, kCheckpoint) : std::nullopt;
}

// PREFIX of PREFIX.index and of PREFIX.data-00000-of-00001.
std::optional<FoundBundle> bundle_of_part(const std::string& path) {
  constexpr std::string_view kIndex = ".index", kData = ".data-";
  constexpr std::string_view kShardForm = "00000-of-00001";
  if (path.ends_with(kIndex)) {
    return bundle_at(path.substr(0, path.size() - kIndex.size()), kCheckpoint);
  }
  const std::size_t at = path.rfind(kData);
  if (at == std::string::npos || path.size() - at != kData.size() + kShardForm.size()) {
    return std::nullopt;
  }
  return bundle_at(path.substr(0, at), kCheckpoint);
}

}  // namespace

std::optional<FoundBundle> find_bundle(const std::string& path) {
  c_path("find_bundle", path);
  std::error_code error;
  if (fs::is_directory(path, error)) return bundle_in_folder(path);
  if (!is_file(path)) return bundle_at(path, kCheckpoint);
  if (fs::path(path).filename() == "saved_model.pb") {
    return bundle_at(folder_of(path) + "/variables/variables", kSavedModel);
  }
  return bundle_of_part(path);
}

FileContents read_bundle(const FoundBundle& found) {
  const std::shared_ptr<const Bundle> bundle = open_whole_bundle(found.prefix, {});
  FileContents contents;
  contents.kind = FileKind::kTfCheckpoint;
  for (TensorInfo info : bundle->tensors()) {
    std::unique_ptr<ByteSource> source;
    const bool is_text = info.dtype == tf_dtype_name(kTfString);
    if (is_text && info.shape.empty()) {
      source = std::make_unique<BundleStringSource>(bundle, found.prefix, info);
      info.bytes = source->size();
    } else {
      source = std::make_unique<BundleTensorSource>(bundle, found.prefix, info);
    }
    contents.places.push_back({.extent = contents.extents.size()});
    // What has no DType is listed and not read.
    const bool is_read = find_dtype(info.dtype).has_value();
    contents.extents.push_back({source.get(), 0, info.bytes, std::nullopt, is_read});
    contents.tensors.push_back(std::move(info));
    contents.sources.push_back(std::move(source));
  }
  return contents;
}

}  // namespace openrnn::formats
