#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {
namespace {

template <class T>
class LayerGradients {
 public:
  LayerGradients(const BackwardRun<T>& run, std::int64_t layer, std::int64_t direction, int thread)
      : run_(run),
        packed_(run.shared.packed),
        spec_(packed_.spec()),
        space_(run.scratch.threads[thread]),
        layer_(layer),
        d_(direction),
        thread_(thread) {}

  void run() {
    const auto d = static_cast<std::size_t>(d_);
    rows_of(run_.scratch.da[d], space_.rows_a);
    input_side();
    recurrent_side();
    const std::array<Range, 3> own = own_rows();
    big_product<T>(packed_.kernels(),
                   {.rows = own,
                    .k = count_,
                    .a = space_.rows_a,
                    .a_by_k = true,
                    .sides = {{input_, recurrent_}},
                    .sums = space_.sums,
                    .groups = space_.groups},
                   space_.product);
    for (const Range& rows : own) store_bias(rows);
    if (spec_.projecting()) projection();
  }

 private:
  // Every valid position in the order of the sums over them; counts those of each group.
  template <class F>
  void each_place(F visit) {
    count_ = 0;
    std::int64_t* group = space_.groups;
    const std::int64_t steps = run_.shared.args.max_time;
    for (std::int64_t last = steps; last > 0;) {
      const std::int64_t first = (last - 1) / kGradientSteps * kGradientSteps, before = count_;
      for (std::int64_t t = first; t < last; ++t) {
        for (std::int64_t b = 0; b < run_.shared.args.batch; ++b) {
          if (t < run_.shared.rows.length(b)) visit(t, b, count_++);
        }
      }
      if (count_ > before) *group++ = count_ - before;
      last = first;
    }
  }
  void rows_of(const Grid<T>& grid, const T** rows) {
    each_place([&](std::int64_t t, std::int64_t b, std::int64_t k) { rows[k] = grid.at(t, b); });
  }
  void previous_outputs() {
    const Grid<T>& out = run_.saved.layers[static_cast<std::size_t>(layer_)].out;
    const std::int64_t side = d_ * spec_.hidden_size(), p = layer_ * spec_.num_dirs() + d_;
    each_place([&](std::int64_t t, std::int64_t b, std::int64_t k) {
      const bool first = d_ == 0 ? t == 0 : t == run_.shared.rows.length(b) - 1;
      const Grid<T>& h0 = run_.saved.h0;
      const T* start = h0.base ? h0.at(p, b) : packed_.zeros();
      space_.rows_h[k] = first ? start : out.at(t + (d_ == 0 ? -1 : 1), b) + side;
    });
  }
  bool gru() const { return spec_.mode == RnnMode::kGru; }
  // Columns of a row of gate gradients that a side has: all, but gru's are [n, r, z, n * r].
  Range columns_of(ParamRole role) const {
    const std::int64_t first = gru() && role == ParamRole::kRecurrentWeight ? spec_.num_units : 0;
    return {first, first + spec_.num_gates() * spec_.num_units};
  }
  // The gate of such a column.
  std::int64_t gate_of(std::int64_t m) const {
    const std::int64_t gate = m / spec_.num_units;
    return !gru() ? gate : gate == 0 ? 2 : gate - 1;
  }
  ProductSide<T> side(ParamRole role, std::int64_t width, const T** rows, T** outputs) {
    const Range columns = columns_of(role);
    for (std::int64_t m = columns.first; m < columns.last; ++m) {
      const ParamRegion& region = packed_.layout().weight(layer_, d_, role, gate_of(m));
      outputs[m] = run_.dparams + region.offset + m % spec_.num_units * region.cols;
    }
    return {.m0 = columns.first, .m1 = columns.last, .n1 = width, .b = rows, .c = outputs};
  }
  void input_side() {
    const std::vector<LayerStore<T>>& layers = run_.saved.layers;
    const bool first = layer_ == 0, skipped = first && spec_.skips_input();
    if (!skipped) {
      rows_of(first ? run_.saved.x : layers[static_cast<std::size_t>(layer_ - 1)].input,
              space_.rows_b);
    }
    input_ = side(ParamRole::kInputWeight, skipped ? 0 : spec_.layer_input_size(layer_),
                  space_.rows_b, space_.rows_c);
  }
  void recurrent_side() {
    previous_outputs();
    recurrent_ =
        side(ParamRole::kRecurrentWeight, spec_.hidden_size(), space_.rows_h, space_.rows_r);
  }
  // This thread's share of the work, cut where a side begins or ends.
  std::array<Range, 3> own_rows() const {
    const std::int64_t all = recurrent_.m1, cuts[] = {0, recurrent_.m0, input_.m1, all};
    const std::int64_t first = boundary(cuts, thread_), last = boundary(cuts, thread_ + 1);
    std::array<Range, 3> rows;
    for (std::size_t i = 0; i < 3; ++i) {
      rows[i] = {std::clamp(first, cuts[i], cuts[i + 1]), std::clamp(last, cuts[i], cuts[i + 1])};
    }
    return rows;
  }
  // Where the share of thread `index` begins: a column costs as much as its sides are wide.
  std::int64_t boundary(const std::int64_t (&cuts)[4], std::int64_t index) const {
    constexpr std::int64_t kGrain = 8;
    const std::int64_t in = input_.n1, out = recurrent_.n1;
    const std::int64_t costs[] = {std::max<std::int64_t>(in, 1), in + out, out};
    const auto cost_of = [&](std::size_t i) { return (cuts[i + 1] - cuts[i]) * costs[i]; };
    std::int64_t before =
        (cost_of(0) + cost_of(1) + cost_of(2)) * index / run_.shared.plan.threads();
    for (std::size_t i = 0; i < 3; before -= cost_of(i++)) {
      if (before >= cost_of(i)) continue;
      return std::min(divide_up(cuts[i] + before / costs[i], kGrain) * kGrain, cuts[i + 1]);
    }
    return cuts[3];
  }
  // Both biases enter the same sums; gru's n is the exception.
  void store_bias(const Range& own) {
    const auto store = [&](ParamRole role, std::int64_t m) {
      const ParamRegion& bias = packed_.layout().bias(layer_, d_, role, gate_of(m));
      run_.dparams[bias.offset + m % spec_.num_units] = space_.sums[m];
    };
    for (std::int64_t m = own.first; m < own.last; ++m) {
      if (m < input_.m1) store(ParamRole::kInputBias, m);
      if (m >= recurrent_.m0) store(ParamRole::kRecurrentBias, m);
    }
  }
  void projection() {
    const auto d = static_cast<std::size_t>(d_);
    rows_of(run_.scratch.dh_proj[d], space_.rows_a);
    rows_of(run_.saved.layers[static_cast<std::size_t>(layer_)].h_tilde[d], space_.rows_b);
    const ParamRegion& region = packed_.layout().weight(layer_, d_, ParamRole::kProjection, 0);
    for (std::int64_t m = 0; m < region.rows; ++m) {
      space_.rows_c[m] = run_.dparams + region.offset + m * region.cols;
    }
    const Share own(region.rows, kShareRows, thread_, run_.shared.plan.threads());
    const ProductSide<T> side{
        .m1 = region.rows, .n1 = region.cols, .b = space_.rows_b, .c = space_.rows_c};
    big_product<T>(packed_.kernels(),
                   {.rows = {{{own.first, own.last}}},
                    .k = count_,
                    .a = space_.rows_a,
                    .a_by_k = true,
                    .sides = {{side}},
                    .groups = space_.groups},
                   space_.product);
  }

  const BackwardRun<T>& run_;
  const CpuPacked<T>& packed_;
  const RnnSpec& spec_;
  const BackwardSpace<T>& space_;
  std::int64_t layer_, d_;
  int thread_;
  std::int64_t count_ = 0;
  ProductSide<T> input_, recurrent_;
};

}  // namespace

template <class T>
void weight_gradients(const BackwardRun<T>& run, std::int64_t layer, int thread) noexcept {
  for (std::int64_t d = 0; d < run.shared.spec().num_dirs(); ++d) {
    LayerGradients<T>(run, layer, d, thread).run();
  }
}

template void weight_gradients<float>(const BackwardRun<float>&, std::int64_t, int) noexcept;
template void weight_gradients<double>(const BackwardRun<double>&, std::int64_t, int) noexcept;

}  // namespace openrnn::cpu
