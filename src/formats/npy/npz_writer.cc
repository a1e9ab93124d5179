// Archives that numpy.load reads.
#include "base/excerpt.h"
#include "base/message.h"
#include "formats/npy/npz.h"
#include "formats/npy/npz_values.h"
#include "formats/zip/zip_writer.h"

namespace openrnn {

namespace {

// Elements lie behind prefixes of a multiple of it, so that they can be mapped.
constexpr std::uint64_t kNpzAlignment = 64;
// The length of an entry's name has 16 bits, and '.npy' is behind it.
constexpr std::size_t kMostNpzName = 0xffff - 4;

void check_values(std::span<const NamedView> tensors, std::span<const NamedValue> values) {
  std::vector<NamedView> all(tensors.begin(), tensors.end());
  for (const NamedValue& value : values) all.push_back({value.name, {nullptr, DType::kBool, {0}}});
  all.push_back({std::string(formats::kNpzValues), {nullptr, DType::kBool, {0}}});
  formats::check_named_views("write_npz", all);
  for (const NamedView& one : all) {
    if (one.name.size() <= kMostNpzName) continue;
    throw ArgumentError(message("[write_npz] the name '", excerpt(one.name),
                                "' is too long, expected at most ", kMostNpzName, " bytes"));
  }
}

}  // namespace

void write_npz(const std::string& path, std::span<const NamedView> tensors,
               std::span<const NamedValue> values) {
  check_values(tensors, values);
  std::vector<std::string> prefixes, names;
  for (const NamedView& tensor : tensors) {
    if (tensor.values.dtype == DType::kBfloat16) {
      throw UnsupportedError(message("[write_npz] tensor '", excerpt(tensor.name),
                                     "' is bfloat16, which NumPy's files have no name for"));
    }
    prefixes.push_back(formats::npy_prefix("write_npz", tensor.values));
  }
  for (const NamedValue& value : values) names.push_back(value.name);
  formats::replace_file(path, [&](formats::OutputFile& file) {
    formats::ZipWriter archive(&file, kNpzAlignment);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const ConstArrayView& array = tensors[i].values;
      archive.add(tensors[i].name + ".npy",
                  {prefixes[i], {static_cast<const char*>(array.data), array.size_bytes()}});
    }
    for (const NamedValue& value : values) {
      archive.add(value.name + ".npy", {formats::npz_value(value.value)});
    }
    if (!names.empty()) {
      archive.add(std::string(formats::kNpzValues) + ".npy", {formats::npz_value(names)});
    }
    archive.finish();
  });
}

}  // namespace openrnn
