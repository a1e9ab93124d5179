// The threads of one block as fibers of one thread.
#pragma once

#include <string>
#include <vector>

#include "cudnn/stand_in/kernels/kernels_on_cpu.h"

namespace openrnn::stand_in {

/// Runs blocks of one size, one after another. One at a time in a process.
class BlockOfFibers {
 public:
  BlockOfFibers(Dim3 size, std::size_t shared_bytes, bool reversed);
  ~BlockOfFibers();
  BlockOfFibers(const BlockOfFibers&) = delete;
  BlockOfFibers& operator=(const BlockOfFibers&) = delete;

  /// What went wrong; empty when nothing did. Shared memory holds NaNs at the start.
  std::string run(const Body& body);
  /// For the thread that runs: stands still until the others have come as far.
  void wait();
  void* shared() { return shared_.data(); }

 private:
  struct Fiber;
  static std::vector<Fiber*>& fibers();
  static void enter(unsigned high, unsigned low);
  void take_threads(Fiber& fiber);
  void resume(Fiber& fiber);

  Dim3 size_;
  unsigned threads_;
  bool reversed_;
  std::vector<std::uint32_t> shared_;
  std::size_t shared_words_;
  const Body* body_ = nullptr;
  unsigned next_thread_ = 0, finished_ = 0;
  std::string error_;
  Fiber* running_ = nullptr;
};

}  // namespace openrnn::stand_in
