#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/model_file/looks_like.h"
#include "formats/model_file/open.h"
#include "formats/tensorflow/tensorflow.h"

namespace openrnn {

struct ModelFile::Impl {
  std::string path;
  formats::FileContents contents;
  std::unordered_map<std::string_view, std::size_t> numbers;

  std::size_t number(std::string_view name, std::string_view call) const;
};

std::size_t ModelFile::Impl::number(std::string_view name, std::string_view call) const {
  const auto found = numbers.find(name);
  if (found != numbers.end()) return found->second;
  std::vector<std::string> names;
  for (const TensorInfo& tensor : contents.tensors) names.push_back(tensor.name);
  throw ArgumentError(message("[", call, "] '", excerpt(name), "' is not in ", path,
                              ", expected one of: ", listed_excerpts(names)));
}

ModelFile::ModelFile(const std::string& path)
    : impl_(new Impl{.path = path, .contents = {}, .numbers = {}}) {
  const std::string folder = formats::folder_of(path);
  std::error_code ignored;
  if (const std::optional<formats::FoundBundle> bundle = formats::find_bundle(path)) {
    impl_->contents = formats::read_bundle(*bundle);
  } else if (std::filesystem::is_directory(path, ignored)) {
    formats::refuse_unknown(path, formats::folder_looks_like(path));
  } else {
    impl_->contents = formats::open_contents(
        std::make_unique<formats::FileSource>(path), [&](const std::string& name) {
          return std::make_unique<formats::FileSource>(folder + "/" + name);
        });
  }
  for (std::size_t i = 0; i < tensors().size(); ++i) impl_->numbers[tensors()[i].name] = i;
}
ModelFile::~ModelFile() = default;
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;

const std::string& ModelFile::path() const noexcept { return impl_->path; }
FileKind ModelFile::kind() const noexcept { return impl_->contents.kind; }
const std::vector<TensorInfo>& ModelFile::tensors() const noexcept {
  return impl_->contents.tensors;
}
const std::vector<NamedValue>& ModelFile::values() const noexcept { return impl_->contents.values; }

bool ModelFile::contains(std::string_view name) const { return impl_->numbers.count(name) > 0; }
const TensorInfo& ModelFile::info(std::string_view name) const {
  return tensors()[impl_->number(name, "info")];
}

Array ModelFile::read(std::string_view name) const {
  return formats::read_tensor(impl_->contents, impl_->number(name, "read"));
}
void ModelFile::read_into(std::string_view name, std::span<std::byte> out) const {
  const std::size_t number = impl_->number(name, "read_into");
  const std::uint64_t bytes = tensors()[number].bytes;
  if (bytes != out.size()) {
    throw ArgumentError(message("[read_into] '", excerpt(name), "' has ", bytes,
                                " bytes, expected memory of as many, not of ", out.size()));
  }
  formats::read_tensor_into(impl_->contents, number, out.data());
}
void ModelFile::read_rows(
    std::string_view name,
    const std::function<void(std::int64_t first, const ConstArrayView& rows)>& visit) const {
  formats::read_tensor_rows(impl_->contents, impl_->number(name, "read_rows"), visit);
}
std::string ModelFile::read_bytes(std::string_view name) const {
  return formats::read_tensor_bytes(impl_->contents, impl_->number(name, "read_bytes"));
}
bool ModelFile::has_checksums() const noexcept {
  const std::vector<formats::Extent>& extents = impl_->contents.extents;
  return std::any_of(extents.begin(), extents.end(), [](const formats::Extent& extent) {
    return extent.crc.has_value() || extent.source_checks;
  });
}
void ModelFile::verify() const { formats::verify_contents(impl_->contents); }

std::optional<ConstArrayView> ModelFile::view(std::string_view name) const {
  return formats::view_tensor(impl_->contents, impl_->number(name, "view"));
}

}  // namespace openrnn
