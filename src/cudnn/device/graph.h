// Work that is recorded once and then launched as a whole.
#pragma once

#include <functional>

#include "cudnn/gpu/arena.h"
#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// A CUDA graph: what a function enqueued, with its addresses. The owner keeps their memory. All
/// but the destructor is for a thread where the context is current.
class Graph {
 public:
  /// Calls `work`, which is recorded and not run. Its memory comes from the arena, which must have
  /// all of it: while recording the driver can neither allocate nor wait. Other threads are not
  /// affected.
  /// Throws: what `work` throws; GpuError when the driver cannot record it.
  Graph(Context& context, Arena& memory, const std::function<void()>& work);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Enqueues the recorded work.
  void launch() const;

 private:
  const Context& context_;
  CUgraphExec graph_ = nullptr;
};

/// Whether this thread is recording.
bool is_recording(const Context& context);

}  // namespace openrnn::cudnn
