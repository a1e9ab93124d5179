// Gradients that are complete before their backward pass is.
#pragma once

#include <functional>

#include "openrnn/device.h"

namespace openrnn::graph {

/// Whether the array is empty, or another one has its elements, too.
bool shared(const DeviceArray& array);

/// Told of gradients of leaves while the pass goes on.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  /// Elements [begin, end) of the gradient of `leaf`, which the pass neither reads nor writes again
  /// and which nothing else shares: the listener may write them until the pass ends. It may come
  /// again for elements that have come before, and from another thread than the pass's.
  virtual void ready(std::uint64_t leaf, DeviceArray& gradient, std::int64_t begin,
                     std::int64_t end) noexcept = 0;
};

/// While it exists, passes that begin on this thread tell `listener`; null: nobody.
class Listening {
 public:
  explicit Listening(GradientListener* listener);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  static GradientListener* current();

 private:
  GradientListener* before_;
};

/// What an operation whose gradient is being computed tells of the gradient of one of its inputs.
struct EarlyPart {
  GradientListener* listener = nullptr;  // null: nobody waits for parts of it
  std::uint64_t leaf = 0;
  void ready(DeviceArray& gradient, std::int64_t begin, std::int64_t end) const noexcept {
    if (listener) listener->ready(leaf, gradient, begin, end);
  }
};

/// For the operation whose gradient is being computed on this thread: its input, if that is a leaf
/// whose gradient is this one alone.
EarlyPart early_part(std::size_t input);

/// Where early_part looks while it exists.
class EarlyParts {
 public:
  explicit EarlyParts(std::vector<EarlyPart> of_inputs);
  ~EarlyParts();
  EarlyParts(const EarlyParts&) = delete;
  EarlyParts& operator=(const EarlyParts&) = delete;

 private:
  friend EarlyPart early_part(std::size_t input);
  std::vector<EarlyPart> of_inputs_;
  const EarlyParts* before_;
};

}  // namespace openrnn::graph
