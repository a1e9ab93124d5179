#include "cudnn/device/graph.h"

#include <array>

#include "cudnn/gpu/detour.h"
#include "cudnn/gpu/process_wide.h"

namespace openrnn::cudnn {
namespace {

/// The stream of a GPU on which graphs are recorded, one at a time.
struct Recorder {
  std::mutex mutex;
  CUstream stream = nullptr;
};
using Recorders = std::array<Recorder, kMostGpus>;
constinit std::atomic<Recorders*> all_recorders{nullptr};

// Its own stream, so that work of other threads is not recorded; and not ordered with the legacy
// stream, whose use by others would end the recording.
CUstream stream_of(Recorder& recorder) {
  if (!recorder.stream) {
    check(libraries().driver.stream_create(&recorder.stream, CU_STREAM_NON_BLOCKING),
          "cuStreamCreate");
  }
  return recorder.stream;
}

CUgraph recorded(CUstream stream, const std::function<void()>& work) {
  const DriverApi& driver = libraries().driver;
  // Of this thread alone: others may allocate.
  check(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
  CUgraph graph = nullptr;
  try {
    work();
  } catch (...) {
    driver.stream_end_capture(stream, &graph);
    if (graph) driver.graph_destroy(graph);
    throw;
  }
  check(driver.stream_end_capture(stream, &graph), "cuStreamEndCapture");
  return graph;
}

}  // namespace

Graph::Graph(Context& context, Arena& memory, const std::function<void()>& work)
    : context_(context) {
  const DriverApi& driver = libraries().driver;
  Recorder& recorder = process_wide(all_recorders)[static_cast<std::size_t>(context.ordinal())];
  const std::lock_guard lock(recorder.mutex);
  memory.seal();
  CUgraph graph = nullptr;
  {
    const Detour detour(context, memory, stream_of(recorder));
    graph = recorded(recorder.stream, work);
  }
  const CUresult made = driver.graph_instantiate(&graph_, graph, 0);
  driver.graph_destroy(graph);
  check(made, "cuGraphInstantiate");
}

Graph::~Graph() {
  // One that is still running is freed when it has ended.
  if (graph_ && !forked()) libraries().driver.graph_exec_destroy(graph_);
}

void Graph::launch() const {
  check(libraries().driver.graph_launch(graph_, context_.stream()), "cuGraphLaunch");
}

bool is_recording(const Context& context) {
  const Detour* detour = Detour::of(context);
  return detour && detour->stream();
}

}  // namespace openrnn::cudnn
