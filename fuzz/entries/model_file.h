// What the fuzzers of model files run, shared with the test that replays their corpora.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>

#include "formats/json_models/json_models.h"
#include "formats/model_file/open.h"
#include "formats/npy/npy.h"
#include "formats/npy/npz.h"
#include "formats/npy/npz_values.h"
#include "formats/tensorflow/tensorflow.h"
#include "formats/torch/objects.h"
#include "formats/wav/wav.h"
#include "networks.h"

namespace openrnn::formats {

/// Opens a model file and reads its tensors in every way; whether it is whole. The files that an
/// index names are the bytes after the first zero byte of the input.
inline bool read_model_file(std::string_view input) {
  // A tensor may be named often; each call has time for some.
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 24;
  const std::string_view index = input.substr(0, input.find('\0'));
  const std::string_view shard = input.substr(std::min(input.size(), index.size() + 1));
  const bool is_index = input.starts_with('{') && !shard.empty();
  try {
    const FileContents contents = open_contents(
        std::make_unique<MemorySource>("m", is_index ? index : input),
        [&](const std::string& name) { return std::make_unique<MemorySource>(name, shard); });
    verify_contents(contents);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < contents.tensors.size(); ++i) {
      if (contents.tensors[i].bytes > kMostBytes - bytes) break;
      bytes += contents.tensors[i].bytes;
      try {
        read_tensor_bytes(contents, i);
        view_tensor(contents, i);
        read_tensor(contents, i);
      } catch (const UnsupportedError&) {  // an element type that is listed and not read
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Reads a model file, then makes networks of it, which need no right checksums everywhere.
inline bool fuzz_model_file(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  const bool is_whole = read_model_file(input);
  const std::size_t end = input.find('\0');
  if (input.starts_with('{') && end != std::string_view::npos) {
    // The name is that of the corpus.
    fuzz::write_scratch("m-1.safetensors", input.substr(end + 1));
    fuzz::fuzz_networks(input.substr(0, end));
  } else {
    fuzz::fuzz_networks(input);
  }
  return is_whole;
}

/// A model as JSON, whatever keys it has.
inline bool fuzz_json_model(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  for (const auto read : {read_rtneural, read_nam}) {
    try {
      read(std::make_unique<MemorySource>("m", input));
    } catch (const Error&) {
    }
  }
  return fuzz_model_file(input);
}

/// A checkpoint of TensorFlow 1 without its checksums, too, which keep most changes from it.
inline bool fuzz_tf_file(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  try {
    read_tf_v1(std::make_unique<MemorySource>("m", input), false);
  } catch (const Error&) {  // a graph, or a damaged table
  }
  return fuzz_model_file(input);
}

/// A pickle without its file, as the checksum of an archive keeps most changes from it.
inline bool fuzz_pickle(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  try {
    const std::optional<Pickle> pickle = parse_pickle("pickle", 0, input);
    if (!pickle) return false;
    torch_objects(*pickle, "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// An array of NumPy.
inline bool fuzz_npy(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  try {
    read_npy(MemorySource("a", input));
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// An archive of NumPy, also of bytes that are not found to be one.
inline bool fuzz_npz(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  try {
    const FileContents contents = read_npz(std::make_unique<MemorySource>("m", input));
    for (const NamedValue& value : contents.values) npz_value(value.value);
  } catch (const Error&) {
  }
  return fuzz_model_file(input);
}

/// A WAVE file.
inline bool fuzz_wav(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  try {
    read_wav(MemorySource("a", input));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace openrnn::formats
