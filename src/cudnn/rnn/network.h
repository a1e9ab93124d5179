// A whole network as calls of cuDNN, forward and backward.
#pragma once

#include <algorithm>
#include <functional>

#include "cudnn/rnn/piece.h"

namespace openrnn::cudnn {

/// One direction of one layer, cut into calls of as many steps as cuDNN takes.
struct SavedStrip {
  std::vector<std::unique_ptr<Piece>> pieces;  // in the order of its time
};

/// Some layers that were run as one call; or one layer, cut.
struct SavedStage {
  Part part;
  std::unique_ptr<Piece> piece;    // null: cut
  std::vector<SavedStrip> strips;  // of each direction
};

/// What a forward call saved.
class CudnnSaved final : public SavedForward {
 public:
  std::shared_ptr<const CudnnPacked> packed;
  std::unique_ptr<const Sequence> sequence;
  /// Whether our dropout masks are applied between the stages.
  bool masked = false;
  DropoutKey key;
  std::int64_t chunk = kMostSteps;  // steps of one call
  std::vector<SavedStage> stages;
  std::vector<std::shared_ptr<void>> memory;  // what the pieces read again
};

/// Takes the function that enqueues a call's work, once its tables are on the GPU, and calls it.
using Enqueue = std::function<void(const std::function<void()>& work)>;

/// Runs a call whose arguments were checked; fills `saved` unless it is null. `enqueue`, unless it
/// is empty, may record its work in place of running it.
void run_network(const std::shared_ptr<const CudnnPacked>& packed, const ForwardArgs& args,
                 CudnnSaved* saved, const Enqueue& enqueue = {});
void run_gradient(const CudnnSaved& saved, const BackwardArgs& args);

/// Packed vectors of one direction, of which cuDNN gets at most `chunk` steps at once.
inline std::vector<Slice> cut(const Sequence& sequence, std::int64_t chunk) {
  std::vector<Slice> slices;
  for (std::int64_t t = 0; t < sequence.steps(); t += chunk) {
    slices.push_back(sequence.slice(t, std::min(t + chunk, sequence.steps())));
  }
  return slices;
}

}  // namespace openrnn::cudnn
