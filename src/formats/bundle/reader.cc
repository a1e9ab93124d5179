#include <algorithm>
#include <tuple>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/bundle/bundle.h"
#include "formats/bundle/exchange.h"
#include "formats/tf_dtype.h"

namespace openrnn {

using formats::Bundle;
using formats::BundleEntry;

struct TensorBundleReader::Impl {
  std::string prefix;
  std::unique_ptr<Bundle> bundle;

  const BundleEntry& entry(std::string_view name, std::string_view call) const;
};

namespace {

// Some names for a message, not a thousand.
std::string some_names(const std::vector<TensorInfo>& tensors) {
  std::string text;
  for (std::size_t i = 0; i < tensors.size() && i < 8; ++i) {
    text += (i ? ", '" : "'") + excerpt(tensors[i].name) + "'";
  }
  return tensors.size() > 8 ? message(text, " and ", tensors.size() - 8, " more") : text;
}

}  // namespace

const BundleEntry& TensorBundleReader::Impl::entry(std::string_view name,
                                                   std::string_view call) const {
  if (const BundleEntry* found = bundle->find(name)) return *found;
  throw ArgumentError(message("[", call, "] '", excerpt(name), "' is not in ", prefix,
                              ", expected one of: ", some_names(bundle->tensors())));
}

TensorBundleReader::TensorBundleReader(const std::string& prefix, TensorBundleOptions options)
    : impl_(new Impl{prefix, formats::open_whole_bundle(prefix, options)}) {}
TensorBundleReader::~TensorBundleReader() = default;
TensorBundleReader::TensorBundleReader(TensorBundleReader&&) noexcept = default;
TensorBundleReader& TensorBundleReader::operator=(TensorBundleReader&&) noexcept = default;

const std::string& TensorBundleReader::prefix() const noexcept { return impl_->prefix; }

const std::vector<TensorInfo>& TensorBundleReader::tensors() const noexcept {
  return impl_->bundle->tensors();
}

std::vector<std::string> TensorBundleReader::names_in_file_order() const {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : tensors()) names.push_back(tensor.name);
  const auto place = [this](const std::string& name) {
    const BundleEntry& entry = *impl_->bundle->find(name);
    return std::tuple(entry.shard, entry.offset, entry.size);
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  return names;
}

bool TensorBundleReader::contains(std::string_view name) const {
  return impl_->bundle->find(name) != nullptr;
}

const TensorInfo& TensorBundleReader::info(std::string_view name) const {
  impl_->entry(name, "info");
  return *std::lower_bound(tensors().begin(), tensors().end(), name,
                           [](const TensorInfo& a, std::string_view b) { return a.name < b; });
}

Array TensorBundleReader::read(std::string_view name) const {
  return impl_->bundle->read(std::string(name), impl_->entry(name, "read"));
}

StringTensor TensorBundleReader::read_strings(std::string_view name) const {
  return impl_->bundle->read_strings(std::string(name), impl_->entry(name, "read_strings"));
}

TensorValue TensorBundleReader::read_value(std::string_view name) const {
  if (impl_->entry(name, "read_value").dtype == formats::kTfString) return read_strings(name);
  return read(name);
}

std::string TensorBundleReader::read_string(std::string_view name) const {
  StringTensor strings = read_strings(name);
  if (!strings.shape.empty()) {
    throw TypeError(message("[read_string] tensor '", excerpt(name), "' has shape ",
                            to_string(strings.shape), ", expected a scalar"));
  }
  return std::move(strings.values[0]);
}

void TensorBundleReader::verify() const { impl_->bundle->verify(); }

}  // namespace openrnn
