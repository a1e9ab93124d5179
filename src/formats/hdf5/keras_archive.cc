// The zip archive that Keras 3 writes: config.json, metadata.json and model.weights.h5.
#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/file/owned_source.h"
#include "formats/hdf5/reader.h"
#include "formats/zip/entry_source.h"

namespace openrnn::formats {

namespace {

// The checksum of the entry is that of all elements that lie in it as they are.
void take_checksum(const ByteSource* source, const ZipEntry& entry, FileContents* contents) {
  const std::size_t whole = contents->extents.size();
  for (TensorPlace& place : contents->places) {
    const Extent& extent = contents->extents[place.extent];
    if (extent.source != source) continue;
    place.first = extent.offset;
    place.extent = whole;
  }
  contents->extents.push_back({source, 0, entry.bytes, entry.crc});
}

}  // namespace

bool is_keras_archive(const ZipArchive& archive) {
  return archive.find(kKerasWeights) && archive.find(kKerasConfig);
}

FileContents read_keras_archive(std::unique_ptr<ByteSource> file) {
  const ZipArchive archive(*file);
  const ZipEntry* const weights = archive.find(kKerasWeights);
  if (!weights) throw FormatError(file->path(), 0, "the archive has no model.weights.h5");
  std::unique_ptr<ByteSource> source;
  if (weights->method == 0) {
    source = entry_source(archive, *weights);
  } else {
    source = std::make_unique<OwnedSource>(message(file->path(), "/", weights->name),
                                           archive.read_whole(*weights));
  }
  const ByteSource* const inside = source.get();
  FileContents contents = read_hdf5(std::move(source));
  if (weights->method == 0 && archive.has_checksums()) {
    take_checksum(inside, *weights, &contents);
  }
  contents.kind = FileKind::kKerasArchive;
  std::vector<NamedValue> values;
  for (const std::string_view name : {kKerasConfig, kKerasMetadata}) {
    const ZipEntry* const entry = archive.find(name);
    if (entry) values.push_back({std::string(name), archive.read_whole(*entry)});
  }
  std::move(contents.values.begin(), contents.values.end(), std::back_inserter(values));
  contents.values = std::move(values);
  contents.sources.push_back(std::move(file));
  return contents;
}

}  // namespace openrnn::formats
