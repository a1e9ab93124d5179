// Shared by the files of the stand-in driver.
#pragma once

#include <cuda.h>

#include "cudnn/stand_in/machine.h"

namespace openrnn::stand_in {

inline CUresult whole() { return broken().empty() ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS; }

/// What a call answers when the machine is broken or no context is current.
inline CUresult ready(const char* call) {
  if (!has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  return is_whole(call) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

inline CUresult result_of(CaptureAnswer answer) {
  switch (answer) {
    case CaptureAnswer::kAllowed:
      return CUDA_SUCCESS;
    case CaptureAnswer::kInvalidated:
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    case CaptureAnswer::kImplicit:
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    default:
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
}

inline Stream number_of(CUstream stream) { return reinterpret_cast<Stream>(stream); }

/// The same for a call that allocates or frees; for one that waits for a stream.
inline CUresult ready_outside_of_captures(const char* call) {
  const CUresult answer = ready(call);
  return answer == CUDA_SUCCESS ? result_of(may_call()) : answer;
}
inline CUresult ready_to_wait(const char* call, CUstream stream) {
  const CUresult answer = ready(call);
  return answer == CUDA_SUCCESS ? result_of(may_wait(number_of(stream))) : answer;
}

}  // namespace openrnn::stand_in
