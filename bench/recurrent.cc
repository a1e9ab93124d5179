// Times the cpu engine's recurrent layers against the processor's peak, measured in between.
// Usage: recurrent [THREADS [FILTER]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cpu/cpu_engine.h"
#include "peak.h"

namespace openrnn::bench {
namespace {

struct Config {
  const char* name;
  RnnMode mode;
  std::int64_t layers, units, batch, time;
};

std::vector<Config> configs() {
  std::vector<Config> list;
  const std::int64_t sizes[][4] = {
      {1, 64, 1, 100},  {1, 128, 1, 100}, {1, 256, 1, 100}, {1, 512, 1, 50},  {1, 1024, 1, 50},
      {1, 256, 16, 50}, {1, 512, 32, 50}, {4, 128, 64, 20}, {4, 512, 64, 30}, {4, 1024, 64, 40}};
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    for (const auto& s : sizes) {
      list.push_back({mode == RnnMode::kLstm ? "LSTM" : "GRU", mode, s[0], s[1], s[2], s[3]});
    }
  }
  return list;
}

struct Problem {
  explicit Problem(const Config& c)
      : spec{.mode = c.mode, .num_layers = c.layers, .num_units = c.units, .input_size = c.units},
        params(random(params_size(spec), 0.08)),
        x(random(c.time * c.batch * c.units, 1)),
        y(DType::kFloat32, {c.time * c.batch * c.units}),
        dy(random(c.time * c.batch * c.units, 1)),
        dx(y),
        dparams(params) {
    args.max_time = c.time;
    args.batch = c.batch;
    args.x = x.data();
    args.y = y.data();
  }
  static Array random(std::int64_t size, double range) {
    RandomStream stream(7);
    Array values(DType::kFloat32, {size});
    for (float& v : values.as<float>()) v = static_cast<float>(stream.uniform(-range, range));
    return values;
  }
  RnnSpec spec;
  Array params, x, y, dy, dx, dparams;
  ForwardArgs args;
};

// The shortest of repetitions for about half a second, each followed by a measurement of the peak.
template <class Run>
void measure(const Config& c, const char* pass, double flops, int threads, Run run) {
  double best = 1e9, peak = 0, spent = 0;
  for (int i = 0; i < 3 || (spent < 0.4 && i < 300); ++i) {
    const double start = seconds_now();
    run();
    const double took = seconds_now() - start;
    spent += took;
    best = std::min(best, took);
    if (i % 8 == 0) peak = std::max(peak, fma_peak(threads));
  }
  const double speed = flops / best / 1e9;
  std::printf("%-4s L%ld U%-4ld B%-2ld T%-3ld %-16s %9.3f ms %7.1f GFLOP/s %5.1f %% of %.0f\n",
              c.name, c.layers, c.units, c.batch, c.time, pass, best * 1e3, speed,
              100 * speed / peak, peak);
  std::fflush(stdout);
}

void run_config(const Config& c, int threads) {
  Problem p(c);
  const Engine& engine = cpu_engine();
  const double flops =
      2.0 * static_cast<double>(params_size(p.spec)) * static_cast<double>(c.batch * c.time);
  p.args.params = engine.pack(p.spec, p.params.view(), PackFor::kInference);
  const auto workspace = engine.make_workspace(p.args.params, c.batch, c.time);
  measure(c, "forward", flops, threads, [&] { engine.forward(p.args, workspace.get()); });
  ForwardArgs args = p.args;
  measure(c, "forward_backward", 3 * flops, threads, [&] {
    args.params = engine.pack(p.spec, p.params.view(), PackFor::kTraining);
    const auto saved = engine.forward_saving(args);
    BackwardArgs back;
    back.saved = saved.get();
    back.dy = p.dy.data();
    back.dx = p.dx.data();
    back.dparams = p.dparams.data();
    engine.backward(back);
  });
}

}  // namespace
}  // namespace openrnn::bench

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : openrnn::num_threads();
  const char* filter = argc > 2 ? argv[2] : "";
  openrnn::set_num_threads(threads);
  for (const auto& c : openrnn::bench::configs()) {
    const std::string name = std::string(c.name) + " L" + std::to_string(c.layers) + " U" +
                             std::to_string(c.units) + " B" + std::to_string(c.batch);
    if (name.find(filter) != std::string::npos) openrnn::bench::run_config(c, threads);
  }
}
