// Layers shifted in time: each thread has some layers, and computes chunks of their steps one chunk
// behind the thread of the layers below.
//
// | wave | thread 0          | thread 1          | thread 2          |
// |------|-------------------|-------------------|-------------------|
// | 0    | chunk 0, layers 0 |                   |                   |
// | 1    | chunk 1           | chunk 0, layers 1 |                   |
// | 2    | chunk 2           | chunk 1           | chunk 0, layers 2 |
#include "cpu/forward/forward_rows.h"

namespace openrnn::cpu {

// A chunk of the layers of a group; outside of the chunks nothing.
template <class T>
void ForwardRun<T>::run_part(Member& me, std::int64_t group, std::int64_t chunk,
                             std::int64_t chunks) noexcept {
  if (chunk < 0 || chunk >= chunks) return;
  const std::int64_t all = shared.spec().num_layers, steps = wave.wave_steps;
  const std::int64_t first = chunk * steps, end = first + steps;
  ForwardRows<T> rows(*this, me);
  for (std::int64_t l = wave.first_layer(all, group); l < wave.first_layer(all, group + 1); ++l) {
    run_steps(me, l, 0, first, end);
    if (shared.dropping() && l + 1 < all) rows.drop_outputs(l, first, end);
    if (chunk + 1 < chunks) continue;
    rows.finish_layer(l);
    if (l + 1 == all) rows.finish_output();
  }
}

// Whether this thread takes part to the end.
template <class T>
bool ForwardRun<T>::run_shifted(Member& me) noexcept {
  Barrier& barrier = shared.row_barrier(me);
  const int groups = wave.layer_groups;
  int members = groups;
  if (gather) {
    if (me.thread == 0) ForwardRows<T>(*this, me).gather_inputs();
    if (!wait(me, barrier, members)) return false;
    members = shared.plan.threads();
  }
  const std::int64_t longest = me.rows ? shared.rows.length(shared.row(me, 0)) : 0;
  const std::int64_t chunks = std::max<std::int64_t>(divide_up(longest, wave.wave_steps), 1);
  for (std::int64_t now = 0; now < chunks + groups - 1; ++now) {
    // A caller that goes on alone does what every group has left.
    const bool alone = members == 1;
    const std::int64_t first = alone ? 0 : me.thread, last = alone ? groups : first + 1;
    for (std::int64_t group = first; group < last; ++group) {
      run_part(me, group, now - group, chunks);
    }
    if (now + 1 < chunks + groups - 1 && !wait(me, barrier, members)) return false;
    members = shared.plan.threads();
  }
  return true;
}

template void ForwardRun<float>::run_part(Member&, std::int64_t, std::int64_t,
                                          std::int64_t) noexcept;
template void ForwardRun<double>::run_part(Member&, std::int64_t, std::int64_t,
                                           std::int64_t) noexcept;
template bool ForwardRun<float>::run_shifted(Member&) noexcept;
template bool ForwardRun<double>::run_shifted(Member&) noexcept;

}  // namespace openrnn::cpu
