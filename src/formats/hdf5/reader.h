// HDF5 files, of which the part is read that h5py writes for Keras.
#pragma once

#include "formats/hdf5/structure/file.h"
#include "formats/tensors/contents.h"
#include "formats/zip/zip_reader.h"

namespace openrnn::formats {

/// The entries of an archive of Keras 3.
inline constexpr std::string_view kKerasWeights = "model.weights.h5", kKerasConfig = "config.json",
                                  kKerasMetadata = "metadata.json";

/// kKerasH5 or kKerasWeights where its root group tells, else kHdf5.
/// Throws: FormatError, UnsupportedError, IoError.
FileKind kind_of_hdf5(const ByteSource& file);

/// Datasets under their paths, 'model_weights/lstm/lstm/kernel:0'; attributes as values, those of
/// groups under the group's path and '/': 'model_weights/lstm/weight_names'.
/// Throws: FormatError, UnsupportedError, IoError.
FileContents read_hdf5(std::unique_ptr<ByteSource> file);

/// Whether an archive is one of Keras 3, by the names of its entries.
bool is_keras_archive(const ZipArchive& archive);
/// The tensors of model.weights.h5 in it, and 'config.json' and 'metadata.json' as values.
FileContents read_keras_archive(std::unique_ptr<ByteSource> file);

}  // namespace openrnn::formats
