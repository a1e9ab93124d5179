// How work is divided among threads.
#pragma once

#include <cstdint>

namespace openrnn::cpu {

/// Threads of a call that may have `max_threads` at most; 0: as many as num_threads() says.
int most_threads(int max_threads);

/// How many of `most` threads `work` is worth: one below `alone`, and half of that for each of
/// more.
int threads_for(double work, double alone, int most) noexcept;

/// The part of [0, size) that member `index` of `count` takes, in whole units of `grain`.
struct Share {
  std::int64_t first, last;
  Share(std::int64_t size, std::int64_t grain, int index, int count);
};

}  // namespace openrnn::cpu
