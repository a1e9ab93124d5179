// Engines as plain C, for the tests that compare them from outside.

#include "call.h"
#include "openrnn/runtime.h"
#include "spec.h"

using namespace openrnn;
using openrnn::testapi::call;
using openrnn::testapi::to_spec;

extern "C" {

/// One forward call and, when `backward_calls` > 0, that many backward calls on what it saved.
struct ApiRun {
  const char* engine;
  const void* params;
  std::int64_t params_size, max_time, batch;
  std::int32_t time_major, training, saving, backward_calls;
  std::uint64_t dropout_seed, dropout_call;
  const std::int32_t* lengths;
  const void *x, *h0, *c0;
  void *y, *hn, *cn;
  const void *dy, *dhn, *dcn;
  void *dx, *dh0, *dc0, *dparams;
};

}  // extern "C"

namespace {

ForwardArgs to_forward(const ApiRun& run, std::shared_ptr<const PackedParams> params) {
  ForwardArgs args;
  args.params = std::move(params);
  args.max_time = run.max_time;
  args.batch = run.batch;
  args.time_major = run.time_major != 0;
  args.sequence_lengths = run.lengths;
  args.x = run.x;
  args.h0 = run.h0;
  args.c0 = run.c0;
  args.y = run.y;
  args.hn = run.hn;
  args.cn = run.cn;
  args.training = run.training != 0;
  args.dropout = {run.dropout_seed, run.dropout_call};
  return args;
}

void backward(const Engine& engine, const SavedForward& saved, const ApiRun& run) {
  BackwardArgs args;
  args.saved = &saved;
  args.dy = run.dy;
  args.dhn = run.dhn;
  args.dcn = run.dcn;
  args.dx = run.dx;
  args.dh0 = run.dh0;
  args.dc0 = run.dc0;
  args.dparams = run.dparams;
  for (int i = 0; i < run.backward_calls; ++i) engine.backward(args);
}

void run_engine(const ApiSpec& api, const ApiRun& run) {
  const RnnSpec spec = to_spec(api);
  const Engine& chosen = engine(run.engine);
  const ConstArrayView params{run.params, spec.dtype, {run.params_size}};
  const PackFor purpose = run.saving ? PackFor::kTraining : PackFor::kInference;
  const ForwardArgs args = to_forward(run, chosen.pack(spec, params, purpose));
  if (!run.saving) {
    chosen.forward(args);
    return;
  }
  const std::unique_ptr<SavedForward> saved = chosen.forward_saving(args);
  backward(chosen, *saved, run);
}

}  // namespace

extern "C" {

OPENRNN_API const char* openrnn_test_run(const ApiSpec* spec, const ApiRun* run) {
  return call([&] { run_engine(*spec, *run); });
}

/// One row of the masks of that MaskOf, in double or in float.
OPENRNN_API void openrnn_test_dropout_row(std::uint64_t seed, std::uint64_t number,
                                          std::int32_t masks, std::uint32_t layer,
                                          std::uint32_t time, std::uint32_t row, double rate,
                                          std::int32_t in_double, std::int64_t width, void* out) {
  const DropoutKey key = key_of({seed, number}, static_cast<MaskOf>(masks));
  const DropoutRow at{layer, time, row};
  const auto size = static_cast<std::size_t>(width);
  if (in_double) {
    dropout_mask<double>(key, at, rate, {static_cast<double*>(out), size});
  } else {
    dropout_mask<float>(key, at, rate, {static_cast<float*>(out), size});
  }
}

OPENRNN_API const char* openrnn_test_set_num_threads(std::int32_t n) {
  return call([&] { set_num_threads(n); });
}

/// The names of available_cpu_isas, apart by blanks.
OPENRNN_API const char* openrnn_test_cpu_isas(char* out, std::int64_t capacity) {
  return call([&] {
    std::string names;
    for (const std::string_view isa : available_cpu_isas()) names += std::string(isa) + " ";
    if (static_cast<std::int64_t>(names.size()) >= capacity) throw ArgumentError("too many names");
    names.copy(out, names.size());
    out[names.size()] = 0;
  });
}

OPENRNN_API const char* openrnn_test_force_cpu_isa(const char* name) {
  return call([&] { force_cpu_isa(name); });
}

}  // extern "C"
