// cuDNN's random generators of dropout.
#pragma once

#include <cstdint>
#include <memory>

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// Dropout by cuDNN itself, in one call. Rate 0: none.
struct OwnDropout {
  double rate = 0.0;
  /// Of the network; and how many training calls it had before, as in DropoutKey.
  std::uint64_t seed = 0, call = 0;
  /// Whether the call has its own generator, and so the same masks however often it runs.
  bool alone = false;
};

/// Sets a descriptor. Making a generator is GPU work, more than a call of a small network, so that
/// of a seed is made by its call 0, or by its first call in the process, and continues from call to
/// call: masks then follow the order of the calls. Those of the most recently used seeds are kept.
/// The returned object must outlive the descriptor; null without dropout. For a thread where the
/// context is current. Throws: EngineError.
std::shared_ptr<void> set_dropout(Context& context, cudnnHandle_t handle,
                                  cudnnDropoutDescriptor_t descriptor, const OwnDropout& dropout);

}  // namespace openrnn::cudnn
