#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "openrnn/engine_tangent.h"
#include "openrnn/runtime.h"
#include "openrnn/spec_fields.h"
#include "support/expect_error.h"
#include "support/setting.h"

namespace openrnn {
namespace {

using openrnn::testing::Setting;

RnnSpec small() {
  RnnSpec spec;
  spec.num_units = 3;
  spec.input_size = 2;
  return spec;
}

bool can_run(std::string_view name) {
  for (const EngineStatus& status : list_engines()) {
    if (status.name == name) return status.available;
  }
  return false;
}

TEST(Engines, AreListedBestFirst) {
  const std::vector<EngineStatus> list = list_engines();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "cudnn");
  EXPECT_EQ(list[1].name, "cpu");
  EXPECT_EQ(list[2].name, "reference");
  EXPECT_TRUE(list[1].available);
  EXPECT_TRUE(list[2].available);
  for (const EngineStatus& status : list) EXPECT_FALSE(status.detail.empty()) << status.name;
}

TEST(Engines, AreFoundByName) {
  EXPECT_EQ(engine("cpu").name(), "cpu");
  EXPECT_EQ(engine("reference").name(), "reference");
  expect_error<ArgumentError>(
      [] { engine("gpu"); },
      "[engine] engine is 'gpu', expected one of 'cudnn', 'cpu', 'reference'");
}

TEST(Engines, AMissingOneSaysWhatItNeeds) {
  if (can_run("cudnn")) GTEST_SKIP() << "this machine has cuDNN";
  try {
    engine("cudnn");
    FAIL() << "cudnn was there after all";
  } catch (const EngineError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("[engine] 'cudnn' cannot run on this machine: "), 0u) << what;
    EXPECT_NE(what.find(list_engines()[0].detail), std::string::npos) << what;
  }
}

// Embedders reach the engines past the layers, which refuse it themselves.
TEST(Engines, PackStoredWeightsForInferenceAlone) {
  RnnSpec spec = small();
  spec.compute.weights_dtype = WeightsDType::kInt8;
  const Array params(DType::kFloat32, {params_size(spec)});
  for (const std::string_view name : {"cpu", "reference"}) {
    EXPECT_NE(engine(name).pack(spec, params.view(), PackFor::kInference), nullptr);
    expect_error<UnsupportedError>(
        [&] { engine(name).pack(spec, params.view(), PackFor::kTraining); },
        "[pack] weights_dtype is 'int8', which is for inference; expected 'none' in training");
  }
}

// Parameters, workspaces and saved calls are the engine's that made them.
TEST(Engines, TakeNothingOfEachOther) {
  const Array params(DType::kFloat32, {params_size(small())});
  const float x[2] = {};
  float y[3] = {};
  const auto call_of = [&](std::string_view name) {
    ForwardArgs args;
    args.params = engine(name).pack(small(), params.view(), PackFor::kTraining);
    args.max_time = args.batch = 1;
    args.x = x;
    args.y = y;
    return args;
  };
  const struct {
    std::string name, other, of_params, of_saved, from;
  } cases[] = {{"cpu", "reference", "params are packed by another engine, expected cpu's",
                "another engine's", "cpu's forward_saving returned"},
               {"reference", "cpu", "params were packed by another engine, expected reference",
                "of another engine", "forward_saving of reference returned"}};
  for (const auto& one : cases) {
    const Engine& own = engine(one.name);
    const ForwardArgs args = call_of(one.other);
    expect_error<ArgumentError>([&] { own.forward(args, nullptr); }, "[forward] " + one.of_params);
    expect_error<ArgumentError>([&] { own.forward_saving(args); },
                                "[forward_saving] " + one.of_params);
    const auto made = engine(one.other).forward_saving(args);
    const std::string saved = "[backward] saved is ", rest = ", expected what " + one.from;
    expect_error<ArgumentError>([&] { own.backward({.saved = made.get()}); },
                                saved + one.of_saved + rest);
    expect_error<ArgumentError>([&] { own.backward({}); }, saved + "null" + rest);
  }
  const ForwardArgs args = call_of("cpu");
  const auto workspace = engine("reference").make_workspace(call_of("reference").params, {});
  expect_error<ArgumentError>([&] { engine("cpu").forward(args, workspace.get()); },
                              "[forward] workspace is another engine's, expected the cpu's own");
}

/// A call of the small network in `dtype`, over arrays of its own.
struct SmallCall {
  RnnSpec spec = small();
  Array params, x, y;
  ForwardArgs args;

  SmallCall(const Engine& engine, DType dtype = DType::kFloat32) {
    spec.dtype = dtype;
    params = initialize_params(ParamsLayout(spec), 5);
    x = Array(dtype, {3, 2, 2});
    y = Array(dtype, {3, 2, 3});
    args.params = engine.pack(spec, params.view(), PackFor::kTraining);
    args.max_time = 3;
    args.batch = 2;
    args.x = x.data();
    args.y = y.data();
  }
};

// Embedders reach the engines past a session, which checks its calls itself.
TEST(Engines, CheckTheirCalls) {
  for (const std::string_view name : {"cpu", "reference"}) {
    const Engine& own = engine(name);
    ForwardArgs args = SmallCall(own).args;
    args.max_time = -3;
    std::string rest = "max_time is -3 and batch 2, expected 0 or more";
    expect_error<ArgumentError>([&] { own.forward(args); }, "[forward] " + rest);
    expect_error<ArgumentError>([&] { own.forward_saving(args); }, "[forward_saving] " + rest);
    args.params = nullptr;
    rest = "params is null, expected packed parameters";
    expect_error<ArgumentError>([&] { own.forward(args); }, "[forward] " + rest);
    expect_error<ArgumentError>([&] { own.forward_saving(args); }, "[forward_saving] " + rest);
  }
  ForwardArgs again = SmallCall(engine("reference")).args;
  again.recompute = 32;
  expect_error<UnsupportedError>(
      [&] { engine("reference").forward_saving(again); },
      "[forward_saving] engine 'reference' keeps all that backward reads and cannot recompute it, "
      "expected save=True (recompute 0), or engine 'cpu'");
}

TEST(Engines, RefuseSumsOfInt8ThatAreTooLong) {
  const Engine& own = engine("cpu");
  const auto reason = [](std::int64_t widest) {
    return "sums of int8 are of at most 133144 products, and this network has " +
           std::to_string(widest);
  };
  RnnSpec spec{.num_units = 2, .input_size = 133145};
  EXPECT_EQ(own.unsupported(spec), "");
  spec.compute.weights_dtype = WeightsDType::kBfloat16;
  EXPECT_EQ(own.unsupported(spec), "");
  spec.compute.weights_dtype = WeightsDType::kInt8;
  EXPECT_EQ(own.unsupported(spec), reason(133145));
  spec.input_size = 133144;
  EXPECT_EQ(own.unsupported(spec), "");
  spec.input_size = 2;
  spec.num_units = 133145;
  EXPECT_EQ(own.unsupported(spec), reason(133145));
  spec.num_units = 66573;
  EXPECT_EQ(own.unsupported(spec), "");
  spec.direction = Direction::kBidirectional;
  EXPECT_EQ(own.unsupported(spec), reason(133146));
}

TEST(Engines, CheckTheLimitsOfAWorkspace) {
  const Engine& own = engine("cpu");
  const auto params = SmallCall(own).args.params;
  EXPECT_NE(own.make_workspace(params, {}), nullptr);
  const struct {
    bool given;
    WorkspaceLimits limits;
    std::string said;
  } cases[] = {{false, {1, 2, 3}, "null, batch 1, time 2, max_threads 3"},
               {true, {-1, 2, 3}, "given, batch -1, time 2, max_threads 3"},
               {true, {1, -2, 3}, "given, batch 1, time -2, max_threads 3"},
               {true, {1, 2, -3}, "given, batch 1, time 2, max_threads -3"}};
  for (const auto& one : cases) {
    expect_error<ArgumentError>(
        [&] { own.make_workspace(one.given ? params : nullptr, one.limits); },
        "[make_workspace] params are " + one.said + ", expected params and limits of 0 or more");
  }
  expect_error<ArgumentError>(
      [&] {
        own.make_workspace(SmallCall(engine("reference")).args.params, {1, 2, 3});
      },
      "[make_workspace] params are packed by another engine, expected cpu's");
}

TEST(Engines, CheckTheRowsOfABackwardCall) {
  const struct {
    std::string_view name;
    DType dtype;
    std::int64_t recompute;
  } cases[] = {{"cpu", DType::kFloat32, 0},
               {"cpu", DType::kFloat64, 0},
               {"cpu", DType::kFloat32, 32},
               {"cpu", DType::kFloat64, 32},
               {"reference", DType::kFloat32, 0}};
  for (const auto& one : cases) {
    const Engine& own = engine(one.name);
    SmallCall call(own, one.dtype);
    call.args.recompute = one.recompute;
    const auto saved = own.forward_saving(call.args);
    Array rows(one.dtype, {3 * params_size(call.spec)});
    BackwardArgs args;
    args.saved = saved.get();
    args.row_dparams = rows.data();
    args.last_row = 3;
    expect_error<ArgumentError>(
        [&] { own.backward(args); },
        "[backward] row_dparams is of rows 0 to 3, expected rows within 0 to 2");
    if (one.recompute == 0) continue;
    double norms[2] = {};
    args.row_dparams = nullptr;
    args.row_norms = norms;
    expect_error<UnsupportedError>([&] { own.backward(args); },
                                   "[backward] row_norms of a call with recompute, expected "
                                   "row_dparams, or recompute 0");
  }
}

TEST(Engines, CheckTheReserveOfASavedCall) {
  const Engine& own = engine("cpu");
  alignas(kReserveAlignment) static std::byte reserve[1 << 16];
  SmallCall call(own);
  ASSERT_LE(*own.reserve_bytes(call.spec, call.args), std::int64_t{sizeof reserve} - 8);
  const auto refused = [&](ForwardArgs args, const std::string& text) {
    expect_error<ArgumentError>([&] { own.saved_in(args); }, "[saved_in] " + text);
  };
  refused(call.args, "reserve is null, expected a call's");
  call.args.reserve = reserve;
  EXPECT_NE(own.saved_in(call.args), nullptr);
  ForwardArgs wrong = call.args;
  wrong.batch = -1;
  refused(wrong, "max_time is 3 and batch -1, expected 0 or more");
  wrong = call.args;
  wrong.recompute = 32;
  refused(wrong, "reserve is given and recompute is 32, expected one of them");
  wrong = call.args;
  wrong.reserve = reserve + 8;
  refused(wrong, "reserve is not aligned, expected an address that is a multiple of 64");
  wrong = call.args;
  wrong.params = SmallCall(engine("reference")).args.params;
  refused(wrong, "params are packed by another engine, expected cpu's");
}

TEST(Engines, HaveNoSecondDerivativesOfAFunctionThatIsNew) {
  TangentArgs args;
  args.spec = small();
  for (const std::string_view name : {"cpu", "reference"}) {
    EXPECT_TRUE(engine(name).has_tangent(args.spec)) << name;
  }
  // What the cpu leaves to the reference.
  for (const char* option : {"num_proj", "layer_norm"}) {
    RnnSpec spec = small();
    spec.mode = RnnMode::kGru;
    const FieldValue value = *option == 'n' ? FieldValue(std::int64_t{2}) : "products";
    rnn_field(option).put(spec, value);
    EXPECT_FALSE(engine("cpu").has_tangent(spec)) << option;
    EXPECT_TRUE(engine("reference").has_tangent(spec)) << option;
  }
  args.spec.activation = CellActivation{static_cast<CellActivationKind>(100)};
  for (const std::string_view name : {"cpu", "reference"}) {
    EXPECT_FALSE(engine(name).has_tangent(args.spec)) << name;
    expect_error<UnsupportedError>([&] { engine(name).tangent(args); },
                                   "[tangent] engine '" + std::string(name) +
                                       "' has no second derivatives of such a lstm, expected "
                                       "engine 'reference'");
  }
}

TEST(MathKind, OfTheReferenceNamesWhatItComputes) {
  const Engine& own = engine("reference");
  RnnSpec spec = small();
  EXPECT_EQ(own.math_kind(spec), "float32");
  spec.compute.math = Math::kBf16;
  EXPECT_EQ(own.math_kind(spec), "dot");
  spec.compute.math = Math::kBf16x3;
  EXPECT_EQ(own.math_kind(spec), "bf16x3");
  spec.compute = {.weights_dtype = WeightsDType::kInt8};
  EXPECT_EQ(own.math_kind(spec), "int8");
  spec.compute = {.weights_dtype = WeightsDType::kFloat16};
  EXPECT_EQ(own.math_kind(spec), "float32");
  spec.compute = {};
  spec.dtype = DType::kFloat64;
  EXPECT_EQ(own.math_kind(spec), "float64");
}

TEST(MathKind, NamesTheFunctionOfAChoice) {
  const Setting none("OPENRNN_ENGINE", "");
  RnnSpec spec = small();
  EXPECT_EQ(math_kind(spec), "float32");
  spec.dtype = DType::kFloat64;
  EXPECT_EQ(math_kind(spec), "float64");
  spec.dtype = DType::kFloat16;
  spec.compute.math = Math::kBf16;
  const bool amx = cpu_isa() == "amx" || cpu_isa() == "amx_emulated";
  EXPECT_EQ(math_kind(spec), amx ? "amx" : "dot");
  spec.compute.math = Math::kBf16x3;
  EXPECT_EQ(math_kind(spec), amx ? "bf16x3" : "float32");
  spec.compute.math = Math::kFloat32;
  spec.compute.weights_dtype = WeightsDType::kBfloat16;
  EXPECT_EQ(math_kind(spec), "float32");
  spec.compute.weights_dtype = WeightsDType::kInt8;
  EXPECT_EQ(math_kind(spec), "int8");
  spec.compute.weights_dtype = WeightsDType::kNone;
  spec.compute.math = Math::kTf32;
  EXPECT_THROW(math_kind(spec), EngineError);
}

TEST(ChooseEngine, TakesTheBestOrTheForcedOne) {
  {
    const Setting none("OPENRNN_ENGINE", "");
    // Not cudnn where it is there: it would copy all arrays to the GPU and back.
    EXPECT_EQ(choose_engine(small()).name(), "cpu");
  }
  for (const char* name : {"cpu", "reference"}) {
    const Setting forced("OPENRNN_ENGINE", name);
    EXPECT_EQ(choose_engine(small()).name(), name);
  }
  const Setting wrong("OPENRNN_ENGINE", "fast");
  expect_error<ArgumentError>(
      [] { choose_engine(small()); },
      "[OPENRNN_ENGINE] engine is 'fast', expected one of 'cudnn', 'cpu', 'reference'");
}

TEST(ChooseEngine, AForcedOneThatIsMissingIsAnError) {
  if (can_run("cudnn")) GTEST_SKIP() << "this machine has cuDNN";
  const Setting forced("OPENRNN_ENGINE", "cudnn");
  EXPECT_THROW(choose_engine(small()), EngineError);
}

TEST(ChooseEngine, SaysOfEachEngineWhyItCannotRunANetwork) {
  RnnSpec spec = small();
  spec.compute.math = Math::kTf32;
  const std::string reason =
      "math 'tf32' is arithmetic of GPUs; a processor has 'float32', 'bf16' and 'bf16x3'";
  EXPECT_EQ(engine("cpu").unsupported(spec), reason);
  EXPECT_EQ(engine("reference").unsupported(spec), reason);
  const EngineStatus gpu = list_engines()[0];
  {
    const Setting none("OPENRNN_ENGINE", "");
    expect_error<EngineError>([&] { choose_engine(spec); },
                              "[choose_engine] no engine of the cpu can run " + describe(spec) +
                                  "; cudnn: needs device='gpu:0'" +
                                  (gpu.available ? "" : "; " + gpu.detail) + "; cpu: " + reason +
                                  "; reference: " + reason);
  }
  const Setting forced("OPENRNN_ENGINE", "reference");
  expect_error<EngineError>([&] { choose_engine(spec); },
                            "[choose_engine] OPENRNN_ENGINE is 'reference', expected an engine "
                            "that can run " +
                                describe(spec) + ": " + reason);
}

TEST(ChooseEngine, ChecksTheSpecFirst) {
  RnnSpec spec = small();
  spec.num_units = 0;
  EXPECT_THROW(choose_engine(spec), ArgumentError);
}

TEST(CpuIsa, IsOneOfThoseAvailable) {
  const auto available = available_cpu_isas();
  ASSERT_FALSE(available.empty());
  EXPECT_EQ(std::ranges::count(available, "scalar"), 1);
  const std::string before(cpu_isa());
  // The emulation runs when forced alone.
  EXPECT_TRUE(before == "amx_emulated" || std::ranges::count(available, before) == 1) << before;
  for (const std::string_view isa : available) {
    force_cpu_isa(isa);
    EXPECT_EQ(cpu_isa(), isa);
  }
  std::string known;
  for (const std::string_view isa : available) {
    known += (known.empty() ? "" : ", ") + std::string(isa);
  }
  const std::string rest = "] instruction set is 'sse', expected one that this processor runs: ";
  expect_error<EngineError>([] { force_cpu_isa("sse"); }, "[force_isa" + rest + known);
  EXPECT_EQ(cpu_isa(), available.back());
  // The empty name: what the variable says, else the best.
  {
    const Setting wanted("OPENRNN_ISA", "scalar");
    force_cpu_isa("");
    EXPECT_EQ(cpu_isa(), "scalar");
  }
  {
    const Setting wrong("OPENRNN_ISA", "sse");
    EXPECT_EQ(cpu_isa(), "scalar") << "chosen once";
    force_cpu_isa("");
    expect_error<EngineError>([] { cpu_isa(); }, "[OPENRNN_ISA" + rest + known);
  }
  const Setting none("OPENRNN_ISA", "");
  force_cpu_isa("");
  EXPECT_EQ(cpu_isa(), available.back());
  force_cpu_isa(before);
}

#if defined(__x86_64__) && defined(__linux__)
// As the kernel lists the features of the first processor.
TEST(CpuIsa, AreThoseThatTheProcessorHas) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  if (line.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  line += ' ';
  const auto has = [&](std::initializer_list<std::string> flags) {
    return std::ranges::all_of(flags, [&](const std::string& flag) {
      return line.find(' ' + flag + ' ') != std::string::npos;
    });
  };
  const auto available = available_cpu_isas();
  EXPECT_EQ(available.front(), "scalar");
  EXPECT_EQ(std::ranges::count(available, "avx2") == 1, has({"avx2", "fma", "f16c"}));
  EXPECT_EQ(std::ranges::count(available, "avx512") == 1,
            has({"avx512f", "avx512vl", "avx512dq", "avx512bw", "f16c"}));
  if (!has({"amx_tile"})) EXPECT_EQ(std::ranges::count(available, "amx"), 0);
  EXPECT_EQ(std::ranges::count(available, "neon"), 0);
}
#endif

}  // namespace
}  // namespace openrnn
