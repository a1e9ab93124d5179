// Layers shifted in time: each thread has some layers, the first thread the last ones, and computes
// chunks of their steps, the last ones first, one chunk behind the thread of the layers above.
// Their input's gradient, a chunk of it, takes the place of that of the output.
//
// | wave | thread 0               | thread 1               | thread 2               |
// |------|------------------------|------------------------|------------------------|
// | 0    | last chunk, layers 2   |                        |                        |
// | 1    | the chunk before that  | last chunk, layers 1   |                        |
// | 2    | the one before         | the chunk before that  | last chunk, layers 0   |
//
// Then all threads share the gradients of each layer's parameters, which are sums over all steps.
#include "cpu/backward/backward_rows.h"

namespace openrnn::cpu {

// False when this thread's part is over: a member was late, and the caller finishes alone. No
// thread is inside a piece then, so that those that leave touch nothing afterwards.
template <class T>
bool BackwardRun<T>::wait_for_wave(const Member& me, int members) noexcept {
  if (!all_barrier->wait(members)) return true;
  // A thread that leaves may not look at the plan any more.
  if (me.thread != 0) return false;
  went_on_alone();
  shared.plan = {};
  return true;
}

template <class T>
void BackwardRun<T>::transpose_group(std::int64_t group) const noexcept {
  if (!shared.packed.transposes()) return;
  const Range layers = layers_of(group);
  for (std::int64_t l = layers.first; l < layers.last; ++l) {
    const PackedLayer<T> own = weights(l, 0);
    transpose_recurrent<T>(shared.spec(), own, 0, 1);
    if (l > 0 || dx.base) transpose_input<T>(shared.spec(), own, 0, 1);
  }
}

// A chunk of the layers of a group; outside of the chunks nothing.
template <class T>
void BackwardRun<T>::run_part(const Member& me, std::int64_t group, std::int64_t chunk,
                              std::int64_t chunks) noexcept {
  if (chunk < 0 || chunk >= chunks) return;
  const std::int64_t end = longest(me) - chunk * wave.wave_steps;
  const std::int64_t first = std::max<std::int64_t>(end - wave.wave_steps, 0);
  const Range layers = layers_of(group);
  BackwardRows<T> mine(*this, me);
  for (std::int64_t l = layers.last - 1; l >= layers.first; --l) {
    if (chunk == 0) begin_direction(me, l, 0);
    run_steps(me, l, 0, first, end);
    if (chunk + 1 == chunks) end_direction(me, l, 0);
    if (l > 0 || dx.base) mine.input_gradient(l, first, end);
    if (l > 0 && shared.dropping()) mine.drop(l, first, end);
    if (l == 0 && dx.base && chunk + 1 == chunks) mine.finish_input_gradient();
  }
}

// Whether this thread takes part to the end.
template <class T>
bool BackwardRun<T>::run_shifted(const Member& me) noexcept {
  const int groups = wave.layer_groups;
  int members = groups;
  // The first thread alone reads it.
  if (scratch.dy_wide && user_dy.base && me.thread == 0) {
    BackwardRows<T>(*this, me).widen_output_gradient();
  }
  transpose_group(me.thread);
  const std::int64_t chunks = std::max<std::int64_t>(divide_up(longest(me), wave.wave_steps), 1);
  for (std::int64_t now = 0; now < chunks + groups - 1; ++now) {
    // A caller that goes on alone does what every group has left.
    const bool alone = members == 1;
    const std::int64_t first = alone ? 0 : me.thread, last = alone ? groups : first + 1;
    for (std::int64_t group = first; group < last; ++group) {
      run_part(me, group, now - group, chunks);
    }
    if (!wait_for_wave(me, members)) return false;
    members = shared.plan.threads();
  }
  for (std::int64_t l = shared.spec().num_layers - 1; l >= 0; --l) {
    sum_gradients(me, l);
    if (layer_done || l == 0) tell_of(me, l);
  }
  return true;
}

template bool BackwardRun<float>::wait_for_wave(const Member&, int) noexcept;
template bool BackwardRun<double>::wait_for_wave(const Member&, int) noexcept;
template void BackwardRun<float>::transpose_group(std::int64_t) const noexcept;
template void BackwardRun<double>::transpose_group(std::int64_t) const noexcept;
template void BackwardRun<float>::run_part(const Member&, std::int64_t, std::int64_t,
                                           std::int64_t) noexcept;
template void BackwardRun<double>::run_part(const Member&, std::int64_t, std::int64_t,
                                            std::int64_t) noexcept;
template bool BackwardRun<float>::run_shifted(const Member&) noexcept;
template bool BackwardRun<double>::run_shifted(const Member&) noexcept;

}  // namespace openrnn::cpu
