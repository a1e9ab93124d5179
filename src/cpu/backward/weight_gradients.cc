#include "cpu/backward/places.h"

namespace openrnn::cpu {
namespace {

/// The sum over places of a b^T, [columns of a, width of b].
template <class T>
struct OuterSum {
  const T* const* a;
  Range columns;
  const T* const* b;
  std::int64_t width = 0, places = 0;

  std::int64_t height() const { return columns.last - columns.first; }
  /// Whether its norm costs less from pairs of places, a dot product of both a and of both b each,
  /// than from the sum. Measured costs: 9 for a value of a dot product, 1 for a multiply-add of the
  /// sum, 5 for each of its values. Sizes alone decide, so the bits depend on nothing else.
  bool is_of_few() const {
    const std::int64_t pairs = places * (places + 1) / 2;
    return 9 * pairs * (height() + width) <= height() * width * (places + 5);
  }
  /// |sum of a b^T|^2 is the sum over pairs of places of (a_k . a_l) (b_k . b_l).
  double squared_norm(const Kernels<T>& kernels) const {
    const auto pair = [&](std::int64_t k, std::int64_t l) {
      return kernels.dot_wide(a[k] + columns.first, a[l] + columns.first, height()) *
             kernels.dot_wide(b[k], b[l], width);
    };
    double total = 0.0;
    for (std::int64_t k = 0; k < places; ++k) {
      double others = 0.0;
      for (std::int64_t l = 0; l < k; ++l) others += pair(k, l);
      total += 2.0 * others + pair(k, k);
    }
    return std::max(total, 0.0);
  }
};

template <class T>
class LayerGradients {
 public:
  LayerGradients(const BackwardRun<T>& run, const GradientPart<T>& part, std::int64_t layer,
                 std::int64_t direction)
      : run_(run),
        part_(part),
        packed_(run.shared.packed),
        spec_(packed_.spec()),
        space_(part.space),
        layer_(layer),
        d_(direction) {}

  void run() {
    const auto d = static_cast<std::size_t>(d_);
    rows_of(run_.scratch_of(layer_).da[d], space_.rows_a);
    input_side();
    recurrent_side();
    const std::array<Range, 3> own = own_rows();
    for (const Range& rows : own) load_bias(rows);
    multiply({.rows = own,
              .k = count_,
              .a = space_.rows_a,
              .a_by_k = true,
              .sides = {{input_, recurrent_}},
              .accumulate = part_.accumulate,
              .sums = space_.sums,
              .groups = space_.groups});
    for (const Range& rows : own) {
      if (!spec_.normalizes()) store_bias(rows);
    }
    if (packed_.resets_before()) candidate();
    if (spec_.projecting()) projection();
    if (spec_.normalizes()) norm_gradients(run_, part_, layer_, d_);
    if (spec_.use_peepholes) peephole_gradients(run_, part_, layer_, d_);
  }

 private:
  void rows_of(const Grid<T>& grid, const T** rows) {
    count_ = each_place(run_.shared, part_, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
      rows[k] = grid.at(t, b);
    });
  }
  bool gru() const { return spec_.mode == RnnMode::kGru; }
  // Columns of a row of gate gradients that a side has: all, but gru's are [n, r, z, n * r], and
  // [n, r, z] with a reset before the product, where R of n does not multiply h; normalized
  // products have each side apart.
  Range columns_of(ParamRole role) const {
    const bool recurrent = role == ParamRole::kRecurrentWeight;
    const std::int64_t before = spec_.normalizes_products() ? spec_.num_gates() : gru() ? 1 : 0;
    const std::int64_t first = recurrent ? before * spec_.num_units : 0;
    const std::int64_t gates = recurrent ? packed_.recurrent_gates() : spec_.num_gates();
    return {first, first + gates * spec_.num_units};
  }
  // The gate of such a column.
  std::int64_t gate_of(std::int64_t m) const {
    const std::int64_t gate = m / spec_.num_units;
    if (spec_.normalizes_products() && gate >= spec_.num_gates()) return gate - spec_.num_gates();
    return !gru() ? gate : gate == 0 ? 2 : gate - 1;
  }
  ProductSide<T> side(ParamRole role, std::int64_t width, const T** rows, T** outputs) {
    return side(role, columns_of(role), width, rows, outputs);
  }
  ProductSide<T> side(ParamRole role, const Range& columns, std::int64_t width, const T** rows,
                      T** outputs) {
    for (std::int64_t m = columns.first; m < columns.last; m += spec_.num_units) {
      const ParamRegion& region = packed_.layout().weight(layer_, d_, role, gate_of(m));
      T* const to = part_.dparams + region.offset;
      for (std::int64_t u = 0; u < region.rows; ++u) outputs[m + u] = to + u * region.cols;
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
    const LayerStore<T>& store = run_.saved.layers[static_cast<std::size_t>(layer_)];
    if (run_.shared.drops_state()) {
      count_ = each_place(run_.shared, part_, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
        const std::int64_t step = d_ == 0 ? t : run_.shared.rows.length(b) - 1 - t;
        space_.rows_h[k] = store.entering(static_cast<std::size_t>(d_), step, b);
      });
    } else {
      point_before(run_.shared, part_,
                   {layer_, d_, store.out, d_ * spec_.hidden_size(), run_.saved.h0}, space_.rows_h);
    }
    recurrent_ =
        side(ParamRole::kRecurrentWeight, spec_.hidden_size(), space_.rows_h, space_.rows_r);
  }
  // The part's share of the work, cut where a side begins or ends.
  std::array<Range, 3> own_rows() const {
    const std::int64_t all = recurrent_.m1, cuts[] = {0, recurrent_.m0, input_.m1, all};
    const std::int64_t first = boundary(cuts, part_.share), last = boundary(cuts, part_.share + 1);
    std::array<Range, 3> rows;
    for (std::size_t i = 0; i < 3; ++i) {
      rows[i] = {std::clamp(first, cuts[i], cuts[i + 1]), std::clamp(last, cuts[i], cuts[i + 1])};
    }
    return rows;
  }
  // Where share `index` begins: a column costs as much as its sides are wide.
  std::int64_t boundary(const std::int64_t (&cuts)[4], std::int64_t index) const {
    constexpr std::int64_t kGrain = 8;
    const std::int64_t in = input_.n1, out = recurrent_.n1;
    const std::int64_t costs[] = {std::max<std::int64_t>(in, 1), in + out, out};
    const auto cost_of = [&](std::size_t i) { return (cuts[i + 1] - cuts[i]) * costs[i]; };
    std::int64_t before = (cost_of(0) + cost_of(1) + cost_of(2)) * index / part_.shares;
    for (std::size_t i = 0; i < 3; before -= cost_of(i++)) {
      if (before >= cost_of(i)) continue;
      return std::min(divide_up(cuts[i] + before / costs[i], kGrain) * kGrain, cuts[i + 1]);
    }
    return cuts[3];
  }
  // Writes the products, or adds their squared norm.
  void multiply(BigProduct<T> call) {
    const Kernels<T>& kernels = packed_.kernels();
    const bool exact = packed_.arithmetic() == kExact;
    for (ProductSide<T>& side : call.sides) {
      const OuterSum<T> sum{call.a, {side.m0, side.m1}, side.b, side.n1, call.k};
      if (!part_.squares || !exact || side.n1 == 0 || !sum.is_of_few()) continue;
      *part_.squares += sum.squared_norm(kernels);
      side.n1 = 0;
    }
    big_product<T>(kernels, call, space_.product);
    for (const ProductSide<T>& side : call.sides) {
      for (std::int64_t m = side.m0; part_.squares && side.n1 > 0 && m < side.m1; ++m) {
        *part_.squares += kernels.dot_wide(side.c[m], side.c[m], side.n1);
      }
    }
  }
  // The sums go on from the biases that hold them.
  void load_bias(const Range& own) {
    if (!part_.accumulate) return;
    const int biases = spec_.biases_per_gate();
    for (std::int64_t m = own.first; m < own.last; ++m) {
      const bool input = m < input_.m1;
      space_.sums[m] = T{0};
      // What has no bias, or is summed elsewhere, is not stored either.
      if (biases < (input ? 1 : 2) || spec_.normalizes()) continue;
      const ParamRole role = input ? ParamRole::kInputBias : ParamRole::kRecurrentBias;
      const ParamRegion& bias = packed_.layout().bias(layer_, d_, role, gate_of(m));
      space_.sums[m] = part_.dparams[bias.offset + m % spec_.num_units];
    }
  }
  // Both biases enter the same sums; that of n is the exception where the reset comes after.
  void store_bias(const Range& own) {
    const int biases = spec_.biases_per_gate();
    const std::int64_t units = spec_.num_units;
    // A range lies on one side, or on both.
    const bool input = own.first < input_.m1;
    const bool recurrent = own.first >= recurrent_.m0 || packed_.resets_before();
    for (std::int64_t m = own.first, last = m; m < own.last; m = last) {
      last = std::min(own.last, (m / units + 1) * units);
      const auto store = [&](ParamRole role) {
        const ParamRegion& bias = packed_.layout().bias(layer_, d_, role, gate_of(m));
        std::copy(space_.sums + m, space_.sums + last, part_.dparams + bias.offset + m % units);
      };
      if (biases > 0 && input) store(ParamRole::kInputBias);
      if (biases > 1 && recurrent) store(ParamRole::kRecurrentBias);
    }
  }
  // Of R of n, which has multiplied r h.
  void candidate() {
    const auto d = static_cast<std::size_t>(d_);
    const std::int64_t units = spec_.num_units;
    rows_of(run_.saved.layers[static_cast<std::size_t>(layer_)].gates[d], space_.rows_b);
    for (std::int64_t k = 0; k < count_; ++k) space_.rows_b[k] += 3 * units;
    const Share own(units, kShareRows, part_.share, part_.shares);
    multiply({.rows = {{{own.first, own.last}}},
              .k = count_,
              .a = space_.rows_a,
              .a_by_k = true,
              .sides = {{side(ParamRole::kRecurrentWeight, {0, units}, units, space_.rows_b,
                              space_.rows_c)}},
              .accumulate = part_.accumulate,
              .groups = space_.groups});
  }
  void projection() {
    const auto d = static_cast<std::size_t>(d_);
    rows_of(run_.scratch_of(layer_).dh_proj[d], space_.rows_a);
    rows_of(run_.saved.layers[static_cast<std::size_t>(layer_)].h_tilde[d], space_.rows_b);
    const ParamRegion& region = packed_.layout().weight(layer_, d_, ParamRole::kProjection, 0);
    for (std::int64_t m = 0; m < region.rows; ++m) {
      space_.rows_c[m] = part_.dparams + region.offset + m * region.cols;
    }
    const Share own(region.rows, kShareRows, part_.share, part_.shares);
    const ProductSide<T> side{
        .m1 = region.rows, .n1 = region.cols, .b = space_.rows_b, .c = space_.rows_c};
    multiply({.rows = {{{own.first, own.last}}},
              .k = count_,
              .a = space_.rows_a,
              .a_by_k = true,
              .sides = {{side}},
              .accumulate = part_.accumulate,
              .groups = space_.groups});
  }

  const BackwardRun<T>& run_;
  const GradientPart<T>& part_;
  const CpuPacked<T>& packed_;
  const RnnSpec& spec_;
  const BackwardSpace<T>& space_;
  std::int64_t layer_, d_;
  std::int64_t count_ = 0;
  ProductSide<T> input_, recurrent_;
};

}  // namespace

template <class T>
void weight_gradients(const BackwardRun<T>& run, const GradientPart<T>& part,
                      std::int64_t layer) noexcept {
  for (std::int64_t d = 0; d < run.shared.spec().num_dirs(); ++d) {
    LayerGradients<T>(run, part, layer, d).run();
  }
}

template void weight_gradients<float>(const BackwardRun<float>&, const GradientPart<float>&,
                                      std::int64_t) noexcept;
template void weight_gradients<double>(const BackwardRun<double>&, const GradientPart<double>&,
                                       std::int64_t) noexcept;

}  // namespace openrnn::cpu
