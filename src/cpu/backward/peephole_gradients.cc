#include "cpu/backward/place_sums.h"

namespace openrnn::cpu {

template <class T>
void peephole_gradients(const BackwardRun<T>& run, std::int64_t layer, std::int64_t direction,
                        int thread) noexcept {
  const StepContext<T>& shared = run.shared;
  const Share own = PlaceSums<T>::share(shared, thread);
  if (own.first >= own.last) return;
  const BackwardSpace<T>& space = run.scratch.threads[thread];
  const auto d = static_cast<std::size_t>(direction);
  const LayerStore<T>& store = run.saved.layers[static_cast<std::size_t>(layer)];
  const Grid<T>& cells = store.c[d];
  const Grid<T>& now = store.c_now[d].base ? store.c_now[d] : cells;
  // A peephole joins after layer normalization.
  const Grid<T>& da = shared.spec().normalizes() ? run.scratch.dsums[d] : run.scratch.da[d];
  point_before(shared, layer, direction, cells, 0, run.saved.c0, space.rows_b, space.groups);
  const std::int64_t count =
      each_place(shared, space.groups, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
        space.rows_a[k] = da.at(t, b);
        space.rows_h[k] = now.at(t, b);
      });
  PlaceTerms<T> terms;
  const auto add = [&](std::int64_t gate, const T* const* cells_of) {
    const ParamRegion& region =
        shared.packed.layout().bias(layer, direction, ParamRole::kPeephole, gate);
    terms.add({gate * shared.spec().num_units, cells_of, 0, run.dparams + region.offset});
  };
  add(0, space.rows_b);
  add(1, space.rows_b);
  // o sees the cell after the step.
  add(3, space.rows_h);
  PlaceSums<T>(run, space, count).over_share(terms, own);
}

template void peephole_gradients<float>(const BackwardRun<float>&, std::int64_t, std::int64_t,
                                        int) noexcept;
template void peephole_gradients<double>(const BackwardRun<double>&, std::int64_t, std::int64_t,
                                         int) noexcept;

}  // namespace openrnn::cpu
