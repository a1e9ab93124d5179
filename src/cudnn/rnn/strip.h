// One direction of one layer as a network of its own, cut in time: for sequences of more steps than
// cuDNN takes, and for the cells of every step.
#pragma once

#include "cudnn/rnn/network.h"

namespace openrnn::cudnn {

/// The states of a part inside states of the whole network, `plane_bytes` a pseudo-layer.
template <class Pointer>
Pointer states_of(Pointer states, const Part& part, const RnnSpec& network,
                  std::int64_t plane_bytes) {
  if (!states) return nullptr;
  const std::int64_t plane = part.layer * network.num_dirs() + std::max(part.direction, 0);
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<Byte*>(states) + plane * plane_bytes;
}

struct StripForward {
  const SequenceCopier& copier;
  const Sequence& sequence;
  const PartWeights& weights;
  std::int64_t chunk = 1;
  int direction = 0;
  std::int64_t directions = 1;
  const void* in = nullptr;  // packed, of the layer
  void* out = nullptr;       // packed, of the layer: this direction's columns are written
  void* cells = nullptr;     // likewise; null: not wanted
  const void *h0 = nullptr, *c0 = nullptr;
  void *hn = nullptr, *cn = nullptr;
};

/// Runs forward. What backward reads is saved in `memory` and `saved`, unless that is null.
void run_strip(const StripForward& strip, SavedStrip* saved,
               std::vector<std::shared_ptr<void>>& memory);

struct StripBackward {
  const SequenceCopier& copier;
  const Sequence& sequence;
  const PartWeights& weights;
  const SavedStrip& saved;
  std::int64_t chunk = 1;
  int direction = 0;
  std::int64_t directions = 1;
  const void* dout = nullptr;  // packed, of the layer
  void* din = nullptr;  // packed, of the layer: direction 0 writes it, direction 1 adds to it
  const void *dhn = nullptr, *dcn = nullptr;
  void *dh0 = nullptr, *dc0 = nullptr;
  void* dweights = nullptr;
};

void run_strip_gradient(const StripBackward& strip);

}  // namespace openrnn::cudnn
