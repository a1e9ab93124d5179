// Work that is recorded once and then runs at one command.
#pragma once

#include <functional>

#include "cudnn/gpu/arena.h"
#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// A CUDA graph: what a function enqueues, with the addresses that it had. Whoever owns it keeps
/// the memory behind them. All but the destructor is for a thread where the context is current.
class Graph {
 public:
  /// Calls `work`, none of whose work runs. Its memory comes from the arena, which must have all of
  /// it: a driver that records neither allocates nor waits. Other threads are not disturbed.
  /// Throws: what `work` throws; GpuError when the driver cannot record it.
  Graph(Context& context, Arena& memory, const std::function<void()>& work);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Enqueues the work once more.
  void launch() const;

 private:
  const Context& context_;
  CUgraphExec graph_ = nullptr;
};

/// Whether this thread is inside of `work`.
bool is_recording(const Context& context);

}  // namespace openrnn::cudnn
