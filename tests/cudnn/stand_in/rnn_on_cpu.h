// What cuDNN computes, by the reference's loops over the stand-in GPU's memory.
#pragma once

#include "cudnn/stand_in/rnn_descriptors.h"

namespace openrnn::stand_in {

/// Pointers are of the device.
struct RnnCall {
  RnnDescriptor rnn;
  DataDescriptor x_at, y_at;
  const void *x = nullptr, *hx = nullptr, *cx = nullptr, *weights = nullptr;
  void *y = nullptr, *hy = nullptr, *cy = nullptr;
  void* reserve = nullptr;  // null: inference
  std::size_t reserve_bytes = 0;
};

struct RnnGradient {
  RnnDescriptor rnn;
  DataDescriptor x_at, y_at;
  const void *x = nullptr, *y = nullptr, *hx = nullptr, *cx = nullptr, *weights = nullptr;
  const void *dy = nullptr, *dhy = nullptr, *dcy = nullptr;
  void *dx = nullptr, *dhx = nullptr, *dcx = nullptr;
  void* dweights = nullptr;  // of the call for weights alone
  void* reserve = nullptr;
  std::size_t reserve_bytes = 0;
};

/// Makes a generator of dropout in the device's memory.
void set_up_generator(void* states, std::uint64_t seed);

// All of them throw std::runtime_error where a GPU would compute nonsense: a reserve space that was
// not left by the call that must come before, or whose call had other arguments; a generator that
// was never set up.
void run_forward(const RnnCall& call);
void run_backward_data(const RnnGradient& call);
void run_backward_weights(const RnnGradient& call);

}  // namespace openrnn::stand_in
