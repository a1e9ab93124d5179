// How a network is mapped to cuDNN: what cuDNN cannot do, where calls are split, which algorithms
// may run it. Nothing here needs a GPU.
#pragma once

#include <cudnn.h>

#include <string>
#include <vector>

#include "openrnn/engine.h"

namespace openrnn::cudnn {

/// The most steps of one call of cuDNN.
inline constexpr std::int64_t kMostSteps = 65535;
/// The same, or less where OPENRNN_CUDNN_MAX_TIME says so (for tests).
std::int64_t most_steps();

/// The implementation of dropout between the layers in training.
enum class DropoutBy : std::uint8_t {
  /// This library's masks, the same as on every engine. Layers run as separate calls, so cuDNN
  /// cannot run several at once, and their outputs are copied once.
  kExact,
  /// cuDNN's own masks, of which only the rate and the repeatability are known. They follow the
  /// order of calls and not rows, so a call of a part of a batch (DropoutKey::whole_batch) has
  /// exact masks all the same.
  kFast
};
/// OPENRNN_CUDNN_DROPOUT: 'exact' (default) or 'fast'. Throws: ArgumentError for anything else.
DropoutBy dropout_by();

/// One way for cuDNN to compute a network.
struct Variant {
  cudnnRNNAlgo_t algorithm = CUDNN_RNN_ALGO_STANDARD;
  /// Whether the sequences are declared as padded ones; only for rows of one length, whose memory
  /// is the same either way.
  bool padded = false;
  friend bool operator==(const Variant&, const Variant&) = default;
};
/// 'standard', 'persist_static', 'persist_static_small_h', with '+padded'.
std::string to_string(const Variant& variant);

/// OPENRNN_CUDNN_ALGORITHM: 'auto' (default, the safe ones are timed) or the name of one, which
/// is tried alone where it may run. Throws: ArgumentError for anything else.
std::string algorithm_choice();

/// A call as far as the choice of an algorithm depends on it.
struct CallShape {
  std::int64_t steps = 0, rows = 0;
  bool even = true;  // all rows are of one length
  bool training = false;
  int capability = 90;  // 75 for compute capability 7.5
};

/// Candidates for the call by what is known of cuDNN: the standard one, which always works, and
/// others, which cuDNN may still refuse. For 'auto' all that are known to be safe, the standard one
/// first; for a named one, that first wherever it is not known to be refused.
std::vector<Variant> candidates(const RnnSpec& spec, const CallShape& shape,
                                const std::string& choice);

/// The value of NVIDIA_TF32_OVERRIDE, which overrides every math type in NVIDIA's libraries: 'on'
/// is TF32 in all float32 products, 'off' in none.
enum class Tf32Override : std::uint8_t { kNone, kOff, kOn };
Tf32Override tf32_override();

/// The arithmetic of the spec's products on a GPU of that compute capability: 'float64', 'float32',
/// 'tf32', 'fp16'.
std::string_view products_on_gpu(const RnnSpec& spec, int capability);

/// Why no GPU of that compute capability (75 for 7.5) can run the spec; empty when it can.
std::string unsupported_by_cudnn(const RnnSpec& spec, int capability);

/// The sizes of a call; none: of parameters alone.
struct Extent {
  std::int64_t batch = 0, time = 0;
  /// Steps of all rows in one call of cuDNN, without padding.
  std::int64_t vectors = 0;
};
Extent extent_of(const ForwardArgs& args);

/// Throws: EngineError naming the limit and the remedy when a size is beyond what cuDNN takes.
void check_limits(std::string_view call, const RnnSpec& spec, const Extent& extent);

/// Whether a network has more weights than cuDNN can lay out at once, so that its layers run as
/// calls of their own. From 2^31 elements of all matrices together on, cuDNN reports success and a
/// size that has overflowed (seen with 9.28). OPENRNN_CUDNN_MAX_WEIGHTS lowers it, for tests.
bool has_too_many_weights(const RnnSpec& spec);

/// The layers [first, first + count) of a network as one of its own, in both directions or in one.
/// `direction` -1: as the network's.
RnnSpec part_of(const RnnSpec& spec, std::int64_t first, std::int64_t count, int direction);

}  // namespace openrnn::cudnn
