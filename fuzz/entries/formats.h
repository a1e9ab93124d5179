// What the fuzzers of file formats run, shared with the test that replays their corpora.
#pragma once

#include <memory>
#include <string_view>

#include "formats/bundle/bundle.h"
#include "formats/checkpoint_state.h"
#include "formats/coding.h"
#include "formats/event_file.h"
#include "formats/objects/object_graph.h"
#include "networks.h"

namespace openrnn::formats {

/// Opens a bundle and reads every tensor. The input is the length of the index in 4 bytes, the
/// index, then the only data file. Throws: Error if the bundle is bad.
inline void read_packed_bundle(std::string_view input, bool verify_checksums) {
  ByteCursor in(input);
  std::uint32_t index_size = 0;
  std::string_view index;
  if (!in.fixed(&index_size) || !in.bytes(index_size, &index)) {
    throw FormatError("packed", 0, "the input is cut short");
  }
  std::string_view data;
  in.bytes(in.remaining(), &data);
  const Bundle bundle(
      MemorySource("m.index", index),
      [&](std::int32_t, std::int32_t) { return std::make_unique<MemorySource>("m.data", data); },
      {.verify_checksums = verify_checksums});
  for (const TensorInfo& info : bundle.tensors()) {
    const BundleEntry& entry = *bundle.find(info.name);
    if (info.dtype == "string") {
      bundle.read_strings(info.name, entry);
    } else {
      try {
        bundle.read(info.name, entry);
      } catch (const UnsupportedError&) {  // an element type that is listed and not read
      }
    }
  }
  bundle.verify();
}

/// The same bundle as files, of which networks are made.
inline void fuzz_bundle_networks(std::string_view input) {
  ByteCursor in(input);
  std::uint32_t index_size = 0;
  std::string_view index, data;
  if (!in.fixed(&index_size) || !in.bytes(index_size, &index)) return;
  in.bytes(in.remaining(), &data);
  fuzz::write_scratch("m.index", index);
  fuzz::write_scratch("m.data-00000-of-00001", data);
  fuzz::fuzz_networks_at(fuzz::scratch_folder() + "/m", input);
}

/// Whether the input is a whole bundle. Without checksums too, as otherwise no change of a byte
/// would reach what lies behind them.
inline bool fuzz_tensor_bundle(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  bool good = false;
  for (const bool verify_checksums : {false, true}) {
    try {
      read_packed_bundle(input, verify_checksums);
      good = true;
    } catch (const Error&) {
      good = false;
    }
  }
  // Networks ask for right checksums.
  if (good) fuzz_bundle_networks(input);
  return good;
}

inline bool fuzz_event_file(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  try {
    decode_scalar_events("events", input);
    return true;
  } catch (const Error&) {
    return false;
  }
}

inline bool fuzz_checkpoint_state(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  try {
    decode_checkpoint_state(".", input);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// What is read can be written and is read again.
inline bool fuzz_object_graph(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  try {
    const ObjectGraph graph = decode_object_graph("graph", input);
    decode_object_graph("graph", encode_object_graph(graph));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace openrnn::formats
