// Specs, layouts and engines as plain C, for the tests that compare them from outside.

#include <cmath>
#include <cstring>
#include <vector>

#include "call.h"
#include "openrnn/runtime.h"

using namespace openrnn;
using openrnn::testapi::call;

extern "C" {

struct ApiSpec {
  const char *mode, *input_mode, *direction, *dtype;
  std::int64_t num_layers, num_units, input_size, num_proj;
  double dropout;
  double clip_low, clip_high;  // no clip when both are NaN
};

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

/// One region of the layout.
struct ApiRegion {
  std::int64_t is_bias, layer, direction, slot, rows, cols, offset;
};

}  // extern "C"

namespace {

RnnSpec to_spec(const ApiSpec& api) {
  RnnSpec spec;
  spec.mode = parse_rnn_mode(api.mode);
  spec.input_mode = parse_input_mode(api.input_mode);
  spec.direction = parse_direction(api.direction);
  spec.dtype = parse_dtype(api.dtype);
  spec.num_layers = api.num_layers;
  spec.num_units = api.num_units;
  spec.input_size = api.input_size;
  spec.num_proj = api.num_proj;
  spec.dropout = api.dropout;
  if (!std::isnan(api.clip_low)) spec.cell_clip = {api.clip_low, api.clip_high};
  return spec;
}

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

void copy_out(const std::vector<Array>& arrays, void* const* out) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].size_bytes() > 0) std::memcpy(out[i], arrays[i].data(), arrays[i].size_bytes());
  }
}

std::vector<ConstArrayView> views(const void* const* in, std::span<const ParamRegion> regions,
                                  DType dtype) {
  std::vector<ConstArrayView> result;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    result.push_back({in[i], dtype, regions[i].shape()});
  }
  return result;
}

}  // namespace

extern "C" {

OPENRNN_API const char* openrnn_test_run(const ApiSpec* spec, const ApiRun* run) {
  return call([&] { run_engine(*spec, *run); });
}

OPENRNN_API const char* openrnn_test_params_size(const ApiSpec* spec, std::int64_t* size) {
  return call([&] { *size = params_size(to_spec(*spec)); });
}

/// `count` regions at most are written; on return it is the number that there are.
OPENRNN_API const char* openrnn_test_layout(const ApiSpec* spec, ApiRegion* out,
                                            std::int64_t* count) {
  return call([&] {
    const ParamsLayout layout(to_spec(*spec));
    std::int64_t i = 0;
    for (const auto& part : {layout.weights(), layout.biases()}) {
      for (const ParamRegion& r : part) {
        if (i < *count) {
          out[i] = {r.is_bias(), r.layer, r.direction, r.slot, r.rows, r.cols, r.offset};
        }
        ++i;
      }
    }
    *count = i;
  });
}

/// `weights` and `biases`: one pointer for each region, to memory of its size.
OPENRNN_API const char* openrnn_test_to_canonical(const ApiSpec* spec, const void* params,
                                                  std::int64_t size, void* const* weights,
                                                  void* const* biases) {
  return call([&] {
    const ParamsLayout layout(to_spec(*spec));
    const CanonicalParams parts =
        params_to_canonical(layout, {params, layout.spec().dtype, {size}});
    copy_out(parts.weights, weights);
    copy_out(parts.biases, biases);
  });
}

OPENRNN_API const char* openrnn_test_to_params(const ApiSpec* spec, const void* const* weights,
                                               const void* const* biases, void* params) {
  return call([&] {
    const ParamsLayout layout(to_spec(*spec));
    const DType dtype = layout.spec().dtype;
    const Array buffer = canonical_to_params(layout, views(weights, layout.weights(), dtype),
                                             views(biases, layout.biases(), dtype));
    std::memcpy(params, buffer.data(), buffer.size_bytes());
  });
}

/// One row of a mask, in double or in float.
OPENRNN_API void openrnn_test_dropout_row(std::uint64_t seed, std::uint64_t number,
                                          std::uint32_t layer, std::uint32_t time,
                                          std::uint32_t row, double rate, std::int32_t in_double,
                                          std::int64_t width, void* out) {
  const DropoutKey key{seed, number};
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

}  // extern "C"
