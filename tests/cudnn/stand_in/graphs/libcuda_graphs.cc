// The driver's functions that record work and run it again.
#include <atomic>
#include <memory>

#include "cudnn/stand_in/libcuda.h"

namespace {

using namespace openrnn::stand_in;  // NOLINT: this file is that namespace's face

std::atomic<long> launches{0}, alive{0};

}  // namespace

extern "C" {

STAND_IN_API CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  if (!stream || setting("STAND_IN_NO_CAPTURES", 0) != 0) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (captures(number_of(stream))) return CUDA_ERROR_ILLEGAL_STATE;
  const CUresult answer = ready("cuStreamBeginCapture");
  if (answer == CUDA_SUCCESS) begin_capture(number_of(stream), static_cast<CaptureMode>(mode));
  return answer;
}
STAND_IN_API CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = nullptr;
  if (!captures(number_of(stream))) return CUDA_ERROR_ILLEGAL_STATE;
  if (!may_end_capture(number_of(stream))) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  auto work = std::make_unique<Work>();
  if (setting("STAND_IN_SPOILED_CAPTURES", 0) != 0) spoil_capture(number_of(stream));
  if (!end_capture(number_of(stream), *work)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const CUresult answer = ready("cuStreamEndCapture");
  if (answer == CUDA_SUCCESS) *graph = reinterpret_cast<CUgraph>(work.release());
  return answer;
}
STAND_IN_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph,
                                                  unsigned long long) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  const CUresult answer = ready_outside_of_captures("cuGraphInstantiate");
  if (answer != CUDA_SUCCESS) return answer;
  *made = reinterpret_cast<CUgraphExec>(new Work(*reinterpret_cast<Work*>(graph)));
  ++alive;
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuGraphDestroy(CUgraph graph) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  delete reinterpret_cast<Work*>(graph);
  return CUDA_SUCCESS;
}
STAND_IN_API CUresult cuGraphExecDestroy(CUgraphExec made) {
  if (!made) return CUDA_ERROR_INVALID_VALUE;
  delete reinterpret_cast<Work*>(made);
  --alive;
  return CUDA_SUCCESS;
}
// The work again, with what it was given when it was recorded.
STAND_IN_API CUresult cuGraphLaunch(CUgraphExec made, CUstream stream) {
  if (!made) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult answer = ready("cuGraphLaunch"); answer != CUDA_SUCCESS) return answer;
  if (captures(number_of(stream))) {
    spoil_capture(number_of(stream));
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // what the stand-in does not do
  }
  if (const auto answer = may_enqueue(number_of(stream)); answer != CaptureAnswer::kAllowed) {
    return result_of(answer);
  }
  ++launches;
  for (const auto& each : *reinterpret_cast<Work*>(made)) enqueue(number_of(stream), each);
  return whole();
}

// No functions of the driver: what tests ask.
STAND_IN_API long stand_in_graph_launches() { return launches; }
STAND_IN_API long stand_in_graphs() { return alive; }

}  // extern "C"
