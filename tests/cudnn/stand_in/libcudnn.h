// Handles of cuDNN's types over the stand-in's own.
#pragma once

#include "cudnn/stand_in/rnn_descriptors.h"

namespace openrnn::stand_in {

/// Remembers a status that is no success, and returns it.
cudnnStatus_t answer(cudnnStatus_t status);

template <class Own, class Handle>
Own* inside(Handle handle) {
  return reinterpret_cast<Own*>(handle);
}
template <class Own, class Handle>
cudnnStatus_t make(Handle* handle) {
  if (!handle) return answer(CUDNN_STATUS_BAD_PARAM);
  *handle = reinterpret_cast<Handle>(new Own);
  return CUDNN_STATUS_SUCCESS;
}
template <class Own, class Handle>
cudnnStatus_t destroy(Handle handle) {
  delete inside<Own>(handle);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace openrnn::stand_in
