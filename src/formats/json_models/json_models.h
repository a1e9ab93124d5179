// Models as JSON: of RTNeural, whose layers have nested lists of weights, and of NeuralAmpModeler,
// which has one list.
#pragma once

#include "formats/tensors/contents.h"

namespace openrnn::formats {

/// Longer ones are refused: values in memory are some ten to twenty times as large as their text.
inline constexpr std::uint64_t kMostJsonModel = std::uint64_t{1} << 26;

/// What a JSON file is, by the keys that it has: kRtneural, kNam or kUnknown.
FileKind kind_of_json_model(const ByteSource& file);
/// Weights as 'layers.0.weights.1', float32; types as values. Throws: FormatError, IoError.
FileContents read_rtneural(std::unique_ptr<ByteSource> file);
/// 'weights', float32; configuration as values. Throws: FormatError, IoError.
FileContents read_nam(std::unique_ptr<ByteSource> file);

}  // namespace openrnn::formats
