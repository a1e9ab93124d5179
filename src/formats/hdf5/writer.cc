#include <algorithm>

#include "base/message.h"
#include "formats/file/atomic_file.h"
#include "formats/hdf5/image/image.h"
#include "formats/hdf5/reader.h"
#include "formats/zip/zip_writer.h"

namespace openrnn {

namespace {

const std::string& text_of_entry(std::span<const NamedValue> values, std::string_view name) {
  for (const NamedValue& value : values) {
    if (value.name != name) continue;
    if (const auto* const text = std::get_if<std::string>(&value.value)) return *text;
  }
  throw ArgumentError(message("[write_keras_archive] there is no text '", name, "', expected one"));
}

}  // namespace

void write_hdf5(const std::string& path, std::span<const NamedView> tensors,
                std::span<const NamedValue> values) {
  const formats::Hdf5Image image = formats::make_hdf5_image("write_hdf5", tensors, values);
  formats::replace_file(path, [&](formats::OutputFile& file) {
    image.write([&](const void* data, std::size_t bytes) { file.write(data, bytes); });
  });
}

void write_keras_archive(const std::string& path, std::span<const NamedView> tensors,
                         std::span<const NamedValue> values) {
  const std::string& config = text_of_entry(values, formats::kKerasConfig);
  const std::string& metadata = text_of_entry(values, formats::kKerasMetadata);
  std::vector<NamedValue> attributes;
  for (const NamedValue& value : values) {
    if (value.name == formats::kKerasConfig || value.name == formats::kKerasMetadata) continue;
    attributes.push_back(value);
  }
  const formats::Hdf5Image image =
      formats::make_hdf5_image("write_keras_archive", tensors, attributes);
  // An entry's checksum is in front of it.
  std::string weights;
  weights.reserve(static_cast<std::size_t>(image.bytes()));
  image.write([&](const void* data, std::size_t bytes) {
    weights.append(static_cast<const char*>(data), bytes);
  });
  formats::replace_file(path, [&](formats::OutputFile& file) {
    // As wide as the alignment of elements inside the entry.
    formats::ZipWriter archive(&file, formats::kHdf5ElementAlignment);
    const auto add = [&](std::string_view name, const std::string& bytes) {
      archive.add(std::string(name), bytes.data(), bytes.size());
    };
    add(formats::kKerasMetadata, metadata);
    add(formats::kKerasConfig, config);
    add(formats::kKerasWeights, weights);
    archive.finish();
  });
}

}  // namespace openrnn
