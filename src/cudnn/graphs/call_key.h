// Keys of calls that a graph can run.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cudnn/rnn/network.h"

namespace openrnn::cudnn {

/// OPENRNN_CUDA_GRAPHS: '1'; '0' (default). Throws: ArgumentError for anything else.
bool graphs_wanted();

/// Everything that the work of a forward call depends on, except the values and addresses of its
/// arrays: those are copied to blocks of the graph.
struct CallKey {
  RnnSpec spec;
  bool saving = false;
  std::int64_t batch = 0, time = 0;
  bool time_major = true;
  std::array<bool, 4> given{};        // h0, c0, hn, cn
  std::vector<std::int32_t> lengths;  // none: all rows are full
  std::vector<const void*> weights;   // addresses, of each stage
  std::string algorithm;              // what was chosen for the process
  friend bool operator==(const CallKey&, const CallKey&) = default;
};
/// For a thread where the context is current.
CallKey key_of(const CudnnPacked& packed, const ForwardArgs& args, bool saving);

/// Addresses of the weights of each stage of a call that can be recorded. Makes those that are
/// copies.
std::vector<const void*> places_of_weights(const CudnnPacked& packed);

/// Why no graph can run the call; empty when one can.
std::string unrecordable(const ForwardArgs& args);

/// A description: "lstm of 16 units, batch 5, 8 steps, training".
std::string call_text(const ForwardArgs& args, bool saving);

}  // namespace openrnn::cudnn
