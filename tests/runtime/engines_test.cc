#include <gtest/gtest.h>

#include <algorithm>

#include "openrnn/runtime.h"
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
  EXPECT_THROW(force_cpu_isa("sse"), EngineError);
  EXPECT_EQ(cpu_isa(), available.back());
  force_cpu_isa(before);
}

}  // namespace
}  // namespace openrnn
