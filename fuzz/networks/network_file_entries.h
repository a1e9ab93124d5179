// What the fuzzer of OpenRNN's own files runs, shared with the test that replays its corpus.
#pragma once

#include <string_view>

#include "openrnn/runtime_file.h"

namespace openrnn {

/// Opens the bytes as a file and compares every checksum; whether all is right.
inline bool fuzz_network_file(std::string_view input) {
  try {
    const NetworkFile file(std::as_bytes(std::span(input.data(), input.size())));
    bool right = true;
    for (const StoredNetwork& network : file.networks()) {
      try {
        file.verify(network);
      } catch (const FormatError&) {
        right = false;
      }
    }
    return right;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace openrnn
