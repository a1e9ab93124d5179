// What the fuzzer of OpenRNN's own files runs, shared with the test that replays its corpus.
#pragma once

#include "networks.h"
#include "openrnn/runtime_file.h"

namespace openrnn {

/// The network is packed and run as the core does it, without what only mapping knows.
inline void fuzz_stored(const StoredNetwork& network) {
  if (shape_size(network.params.shape) > fuzz::kMostParams) return;
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::kOfRun);
  try {
    fuzz::run_packed(
        std::make_shared<PackedModel>(network.spec, network.params, ModelOptions{.max_threads = 1}),
        nullptr, nullptr);
  } catch (const Error&) {  // what no engine has
  }
}

/// Opens the bytes as a file and compares every checksum; whether all is right.
inline bool fuzz_network_file(std::string_view input) {
  const fuzz::MemoryLimit limit(fuzz::MemoryLimit::of_file(input.size()));
  fuzz::fuzz_networks(input);
  try {
    const NetworkFile file(std::as_bytes(std::span(input.data(), input.size())));
    bool right = true;
    for (const StoredNetwork& network : file.networks()) {
      try {
        file.verify(network);
      } catch (const FormatError&) {
        right = false;
      }
      fuzz_stored(network);
    }
    return right;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace openrnn
