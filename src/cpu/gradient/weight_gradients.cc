#include "cpu/gradient/backward.h"

namespace openrnn::cpu {
namespace {

template <class T>
class LayerGradients {
 public:
  LayerGradients(const BackwardRun<T>& run, std::int64_t layer, std::int64_t direction, int thread)
      : run_(run),
        packed_(*run.saved.packed),
        spec_(packed_.spec()),
        space_(run.scratch.threads[thread]),
        layer_(layer),
        d_(direction),
        thread_(thread) {}

  void run() {
    const auto d = static_cast<std::size_t>(d_);
    const Grid<T>& da = run_.scratch.da[d];
    const std::int64_t outputs = spec_.num_gates() * spec_.num_units;
    if (layer_ > 0 || !spec_.skips_input()) {
      const Grid<T>& input = layer_ == 0
                                 ? run_.saved.x
                                 : run_.saved.layers[static_cast<std::size_t>(layer_ - 1)].input;
      rows_of(da, 0, space_.rows_a);
      rows_of(input, 0, space_.rows_b);
      point_outputs(ParamRole::kInputWeight);
      multiply(outputs, spec_.layer_input_size(layer_), nullptr);
    }
    rows_of(da, run_.saved.packed->spec().mode == RnnMode::kGru ? spec_.num_units : 0,
            space_.rows_a);
    previous_outputs();
    point_outputs(ParamRole::kRecurrentWeight);
    const Share own = multiply(outputs, spec_.hidden_size(), space_.sums);
    store_bias(own);
    if (spec_.mode == RnnMode::kGru) input_bias_of_new();
    if (spec_.projecting()) {
      rows_of(run_.scratch.dh_proj[d], 0, space_.rows_a);
      rows_of(run_.saved.layers[static_cast<std::size_t>(layer_)].h_tilde[d], 0, space_.rows_b);
      const ParamRegion& region = packed_.layout().weight(layer_, d_, ParamRole::kProjection, 0);
      for (std::int64_t m = 0; m < region.rows; ++m) {
        space_.rows_c[m] = run_.dparams + region.offset + m * region.cols;
      }
      multiply(region.rows, region.cols, nullptr);
    }
  }

 private:
  template <class F>
  void each_place(F visit) {
    count_ = 0;
    for (std::int64_t t = 0; t < run_.saved.args.max_time; ++t) {
      for (std::int64_t b = 0; b < run_.saved.args.batch; ++b) {
        if (t < run_.rows.length(b)) visit(t, b, count_++);
      }
    }
  }
  void rows_of(const Grid<T>& grid, std::int64_t offset, const T** rows) {
    each_place(
        [&](std::int64_t t, std::int64_t b, std::int64_t k) { rows[k] = grid.at(t, b) + offset; });
  }
  void previous_outputs() {
    const Grid<T>& out = run_.saved.layers[static_cast<std::size_t>(layer_)].out;
    const std::int64_t side = d_ * spec_.hidden_size(), p = layer_ * spec_.num_dirs() + d_;
    each_place([&](std::int64_t t, std::int64_t b, std::int64_t k) {
      const bool first = d_ == 0 ? t == 0 : t == run_.rows.length(b) - 1;
      const Grid<T>& h0 = run_.saved.h0;
      const T* start = h0.base ? h0.at(p, b) : packed_.zeros();
      space_.rows_b[k] = first ? start : out.at(t + (d_ == 0 ? -1 : 1), b) + side;
    });
  }
  // The gate of output row m: the input side of gru begins with n.
  std::int64_t gate_of(ParamRole role, std::int64_t m) const {
    const std::int64_t gate = m / spec_.num_units;
    const bool rotated = spec_.mode == RnnMode::kGru && role == ParamRole::kInputWeight;
    return rotated ? (gate + 2) % 3 : gate;
  }
  void point_outputs(ParamRole role) {
    const std::int64_t units = spec_.num_units;
    for (std::int64_t m = 0; m < spec_.num_gates() * units; m += units) {
      const ParamRegion& region = packed_.layout().weight(layer_, d_, role, gate_of(role, m));
      for (std::int64_t u = 0; u < units; ++u) {
        space_.rows_c[m + u] = run_.dparams + region.offset + u * region.cols;
      }
    }
  }
  Share multiply(std::int64_t m, std::int64_t n, T* sums) {
    const Share own(m, 24, thread_, run_.plan.threads());
    big_product<T>(packed_.kernels(),
                   {own.first, own.last, 0, n, count_, space_.rows_a, true, space_.rows_b, false,
                    space_.rows_c, nullptr, false, sums},
                   space_.product);
    return own;
  }
  // Both biases enter the same sums; gru's n is the exception.
  void store_bias(const Share& own) {
    const std::int64_t units = spec_.num_units;
    for (std::int64_t m = own.first; m < own.last; ++m) {
      const std::int64_t gate = m / units, u = m % units;
      T* const params = run_.dparams + u;
      params[packed_.layout().bias(layer_, d_, ParamRole::kRecurrentBias, gate).offset] =
          space_.sums[m];
      if (spec_.mode == RnnMode::kGru && gate == 2) continue;
      params[packed_.layout().bias(layer_, d_, ParamRole::kInputBias, gate).offset] =
          space_.sums[m];
    }
  }
  void input_bias_of_new() {
    const Share own(spec_.num_units, 16, thread_, run_.plan.threads());
    T* const bias = run_.dparams +
                    packed_.layout().bias(layer_, d_, ParamRole::kInputBias, 2).offset + own.first;
    std::fill_n(bias, own.last - own.first, T{0});
    rows_of(run_.scratch.da[static_cast<std::size_t>(d_)], own.first, space_.rows_a);
    for (std::int64_t k = 0; k < count_; ++k) {
      packed_.kernels().add(space_.rows_a[k], bias, own.last - own.first);
    }
  }

  const BackwardRun<T>& run_;
  const CpuPacked<T>& packed_;
  const RnnSpec& spec_;
  const BackwardSpace<T>& space_;
  std::int64_t layer_, d_;
  int thread_;
  std::int64_t count_ = 0;
};

}  // namespace

template <class T>
void weight_gradients(const BackwardRun<T>& run, std::int64_t layer, int thread) noexcept {
  for (std::int64_t d = 0; d < run.saved.packed->spec().num_dirs(); ++d) {
    LayerGradients<T>(run, layer, d, thread).run();
  }
}

template void weight_gradients<float>(const BackwardRun<float>&, std::int64_t, int) noexcept;
template void weight_gradients<double>(const BackwardRun<double>&, std::int64_t, int) noexcept;

}  // namespace openrnn::cpu
