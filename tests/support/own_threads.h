// The threads of this process, as the kernel counts them.
#pragma once

#include <chrono>
#include <filesystem>
#include <thread>

namespace openrnn::testing {

inline int own_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

/// The same; one that was waited for may still be listed for a moment.
inline int own_threads_down_to(int wanted) {
  using namespace std::chrono_literals;
  for (int round = 0; round < 1000 && own_threads() > wanted; ++round) {
    std::this_thread::sleep_for(5ms);
  }
  return own_threads();
}

/// How many there are without the library's: this one, and under ThreadSanitizer one of its own,
/// which comes with the first that is started.
inline int threads_alone() {
#if defined(__SANITIZE_THREAD__)
  constexpr int kAlone = 2;
#else
  constexpr int kAlone = 1;
#endif
  std::thread([] {}).join();
  return own_threads_down_to(kAlone);
}

}  // namespace openrnn::testing
