// What the GPU engine decides without a GPU: what it refuses, which algorithms may run, what is
// cut.
#include "cudnn/rnn/plan.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/setting.h"

namespace openrnn::cudnn {
namespace {

using openrnn::testing::Setting;

RnnSpec lstm(std::int64_t units) {
  RnnSpec spec;
  spec.num_units = units;
  spec.input_size = 5;
  return spec;
}

std::string names(const RnnSpec& spec, const CallShape& shape, const std::string& choice = "auto") {
  std::string text;
  for (const Variant& each : candidates(spec, shape, choice)) {
    text += (text.empty() ? "" : " ") + to_string(each);
  }
  return text;
}

constexpr CallShape kInference{10, 4, true, false}, kTraining{10, 4, true, true};
constexpr const char* kStandard = "standard standard+padded";
constexpr const char* kSmall =
    "standard standard+padded persist_static_small_h persist_static_small_h+padded";
constexpr const char* kLarge = "standard standard+padded persist_static persist_static+padded";
constexpr const char* kAll =
    "standard standard+padded persist_static persist_static+padded persist_static_small_h "
    "persist_static_small_h+padded";

TEST(Candidates, OfFewUnitsHaveAnAlgorithmOfTheirOwn) {
  EXPECT_EQ(names(lstm(128), kTraining), kSmall);
  EXPECT_EQ(names(lstm(129), kTraining), kStandard);
  EXPECT_EQ(names(lstm(192), kInference), kSmall);
  EXPECT_EQ(names(lstm(193), kInference), kStandard);
  RnnSpec gru = lstm(193);
  gru.mode = RnnMode::kGru;
  EXPECT_EQ(names(gru, kInference), kStandard);
  RnnSpec plain = lstm(256);
  plain.mode = RnnMode::kRnnTanh;
  EXPECT_EQ(names(plain, kTraining), kSmall);
  plain.num_units = 384;
  EXPECT_EQ(names(plain, kInference), kSmall);
  EXPECT_EQ(names(plain, kTraining), kStandard);
}

// Where PyTorch lets cuDNN persist.
RnnSpec widely_run(std::int64_t units = 512) {
  RnnSpec spec = lstm(units);
  spec.dtype = DType::kFloat16;
  spec.input_size = 256;
  return spec;
}
constexpr CallShape kWide{10, 64, true, true};

TEST(Candidates, PersistWhereOthersHaveLongDone) {
  EXPECT_EQ(names(widely_run(), kWide), kLarge);
  EXPECT_EQ(names(widely_run(1024), {10, 128, true, false, 80}), kLarge);
  EXPECT_EQ(names(widely_run(128), {10, 8, true, true, 70}), kAll);
  RnnSpec gru = widely_run();
  gru.mode = RnnMode::kGru;
  EXPECT_EQ(names(gru, {10, 64, true, true, 70}), kLarge);
  EXPECT_EQ(names(gru, {10, 64, true, true, 80}), kStandard);
}

TEST(Candidates, PersistNowhereElseUnlessNamed) {
  const auto expect_standard = [](const RnnSpec& spec, const CallShape& shape) {
    EXPECT_EQ(names(spec, shape), kStandard) << describe(spec);
    EXPECT_EQ(names(spec, shape, "persist_static"), "persist_static standard") << describe(spec);
  };
  const auto changed = [](auto change) {
    RnnSpec spec = widely_run();
    change(spec);
    return spec;
  };
  expect_standard(changed([](RnnSpec& s) { s.dtype = DType::kFloat32; }), kWide);
  expect_standard(changed([](RnnSpec& s) { s.num_layers = 2; }), kWide);
  expect_standard(changed([](RnnSpec& s) { s.direction = Direction::kBidirectional; }), kWide);
  expect_standard(changed([](RnnSpec& s) { s.num_units = 500; }), kWide);
  expect_standard(changed([](RnnSpec& s) { s.num_units = 1152; }), kWide);
  expect_standard(changed([](RnnSpec& s) { s.input_size = 100; }), kWide);
  for (const std::int64_t rows : {1, 12, 136}) {
    expect_standard(widely_run(), {10, rows, true, true});
  }
  for (const int capability : {75, 86}) {
    expect_standard(widely_run(), {10, 64, true, true, capability});
    expect_standard(lstm(16), {10, 64, true, true, capability});
  }
}

TEST(Candidates, AreTheStandardOneWhereNothingElseMayRun) {
  EXPECT_EQ(names(lstm(16), {10, 4, false, false}), "standard");
  RnnSpec spec = lstm(16);
  spec.num_proj = 7;
  EXPECT_EQ(names(spec, kTraining), kStandard);
  spec = lstm(16);
  spec.dtype = DType::kFloat64;
  EXPECT_EQ(names(spec, kInference), kStandard);
}

TEST(Candidates, FollowTheChoice) {
  EXPECT_EQ(names(lstm(16), kTraining, "standard"), "standard");
  EXPECT_EQ(names(lstm(16), kTraining, "persist_static"), "persist_static standard");
  EXPECT_EQ(names(lstm(16), kTraining, "persist_static_small_h"),
            "persist_static_small_h standard");
  EXPECT_EQ(names(lstm(2000), kTraining, "persist_static"), "persist_static standard");
  EXPECT_EQ(names(lstm(500), kTraining, "persist_static_small_h"), "standard");
  EXPECT_EQ(names(lstm(16), {10, 4, false, true}, "persist_static"), "standard");
}

// NVIDIA's variable decides of float32 alone, and nothing of a network that asks for fp16.
TEST(Products, AreWhatTheOverrideMakesOfThem) {
  RnnSpec plain = lstm(8), tf32 = lstm(8), fp16 = lstm(8);
  tf32.compute.math = Math::kTf32;
  fp16.compute.math = Math::kFp16;
  const auto names = [&] {
    return std::string(products_on_gpu(plain, 80)) + " " + std::string(products_on_gpu(tf32, 80)) +
           " " + std::string(products_on_gpu(fp16, 80));
  };
  const Setting none("NVIDIA_TF32_OVERRIDE", "");
  EXPECT_EQ(names(), "float32 tf32 fp16");
  {
    const Setting off("NVIDIA_TF32_OVERRIDE", "0");
    EXPECT_EQ(names(), "float32 float32 fp16");
  }
  const Setting on("NVIDIA_TF32_OVERRIDE", "1");
  EXPECT_EQ(names(), "tf32 tf32 fp16");
  EXPECT_EQ(products_on_gpu(plain, 75), "float32");
}

// The override is of float32 alone.
TEST(Products, OfOtherTypesAreTheirOwn) {
  for (const char* value : {"", "0", "1"}) {
    const Setting override("NVIDIA_TF32_OVERRIDE", value);
    RnnSpec spec = lstm(4);
    spec.dtype = DType::kFloat64;
    EXPECT_EQ(products_on_gpu(spec, 90), "float64") << value;
    spec.dtype = DType::kFloat16;
    EXPECT_EQ(products_on_gpu(spec, 90), "float32") << value;
  }
}

TEST(Choices, AreTheirDefaultsWhereTheTextIsEmpty) {
  const Setting dropout("OPENRNN_CUDNN_DROPOUT", ""), algorithm("OPENRNN_CUDNN_ALGORITHM", "");
  EXPECT_EQ(dropout_by(), DropoutBy::kExact);
  EXPECT_EQ(algorithm_choice(), "auto");
}

TEST(Choices, AreReadFromTheEnvironment) {
  EXPECT_EQ(algorithm_choice(), "auto");
  EXPECT_EQ(dropout_by(), DropoutBy::kExact);
  EXPECT_EQ(most_steps(), 65535);
  const Setting algorithm("OPENRNN_CUDNN_ALGORITHM", "persist_static");
  const Setting dropout("OPENRNN_CUDNN_DROPOUT", "fast");
  const Setting time("OPENRNN_CUDNN_MAX_TIME", "7");
  EXPECT_EQ(algorithm_choice(), "persist_static");
  EXPECT_EQ(dropout_by(), DropoutBy::kFast);
  EXPECT_EQ(most_steps(), 7);
}

TEST(Choices, ThatAreUnknownAreRefused) {
  const Setting algorithm("OPENRNN_CUDNN_ALGORITHM", "fast");
  EXPECT_EQ(error_of<ArgumentError>(algorithm_choice),
            "[cudnn] OPENRNN_CUDNN_ALGORITHM is 'fast', expected 'auto', 'standard', "
            "'persist_static' or 'persist_static_small_h'");
  const Setting dropout("OPENRNN_CUDNN_DROPOUT", "slow");
  EXPECT_EQ(error_of<ArgumentError>(dropout_by),
            "[cudnn] OPENRNN_CUDNN_DROPOUT is 'slow', expected 'exact' or 'fast'");
  // A limit above cuDNN's own is no limit.
  const Setting time("OPENRNN_CUDNN_MAX_TIME", "100000");
  EXPECT_EQ(most_steps(), 65535);
}

TEST(Unsupported, IsBfloat16) {
  RnnSpec spec = lstm(3);
  spec.dtype = DType::kBfloat16;
  EXPECT_EQ(unsupported_by_cudnn(spec, 90),
            "dtype 'bfloat16' is of processors here; GPUs have float16, float32 and float64, and "
            "device='cpu' has this");
}

TEST(Unsupported, NamesTheRemedy) {
  RnnSpec spec = lstm(4);
  EXPECT_EQ(unsupported_by_cudnn(spec, 75), "");
  spec.compute.math = Math::kFp16;
  EXPECT_EQ(unsupported_by_cudnn(spec, 75), "");
  spec.compute.math = Math::kTf32;
  EXPECT_EQ(unsupported_by_cudnn(spec, 80), "");
  EXPECT_EQ(unsupported_by_cudnn(spec, 75),
            "math 'tf32' needs a GPU of compute capability 8.0, this one has 7.5");
  spec.compute.math = Math::kBf16x3;
  EXPECT_EQ(
      unsupported_by_cudnn(spec, 90),
      "math 'bf16x3' is arithmetic of processors; cuDNN has 'float32', 'tf32' and 'fp16', and "
      "device='cpu' has this");
  spec.compute.math = Math::kFloat32;
  spec.cell_clip = {{-1.0, 1.0}};
  EXPECT_EQ(unsupported_by_cudnn(spec, 90),
            "cuDNN clamps cells only where it reads them, so with cell_clip its final cells and "
            "their gradients are others; device='cpu' clamps what a step leaves");
  spec.cell_clip.reset();
  spec.forget_bias = 1.0;
  EXPECT_EQ(unsupported_by_cudnn(spec, 90),
            "cuDNN reads biases from the parameters alone, without a forget_bias; device='cpu' has "
            "it");
  spec.forget_bias = 0.0;
  spec.compute.weights_dtype = WeightsDType::kInt8;
  EXPECT_EQ(unsupported_by_cudnn(spec, 90),
            "cuDNN has no weights_dtype 'int8'; device='cpu' has it");
  spec.compute = {};
  spec.zoneout = 0.125;
  spec.training = {.dropout = 0.5, .recurrent_dropout = 0.25};
  EXPECT_EQ(unsupported_by_cudnn(spec, 90),
            "cuDNN has the four cells alone, without zoneout 0.125, recurrent_dropout 0.25; "
            "device='cpu' has them");
}

TEST(Unsupported, NamesEachOptionOfAStep) {
  const auto with = [](auto change) {
    RnnSpec spec = lstm(4);
    change(spec);
    return unsupported_by_cudnn(spec, 90);
  };
  const std::string begin = "cuDNN has the four cells alone, without ",
                    end = "; device='cpu' has them";
  EXPECT_EQ(with([](RnnSpec& s) { s.single_bias = true; }), begin + "single_bias true" + end);
  EXPECT_EQ(with([](RnnSpec& s) { s.use_bias = false; }), begin + "use_bias false" + end);
  EXPECT_EQ(with([](RnnSpec& s) {
              s.num_proj = 2;
              s.proj_clip = {{-1.0, 1.0}};
            }),
            begin + "proj_clip [-1, 1]" + end);
  EXPECT_EQ(with([](RnnSpec& s) { s.num_proj = 2; }), "");
  EXPECT_EQ(with([](RnnSpec& s) {
              s.mode = RnnMode::kGru;
              s.num_proj = 2;
            }),
            begin + "num_proj 2" + end);
  EXPECT_EQ(with([](RnnSpec& s) {
              s.mode = RnnMode::kRnnTanh;
              s.num_proj = 2;
            }),
            "cuDNN projects lstm only, expected no num_proj for rnn_tanh; device='cpu' has it");
  for (const RnnMode mode : {RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    EXPECT_EQ(with([&](RnnSpec& s) { s.mode = mode; }), "");
  }
  for (const auto& [math, name] : {std::pair{Math::kBf16, "bf16"}, {Math::kBf16x3, "bf16x3"}}) {
    EXPECT_EQ(with([given = math](RnnSpec& s) { s.compute.math = given; }),
              "math '" + std::string(name) +
                  "' is arithmetic of processors; cuDNN has 'float32', 'tf32' and 'fp16', and "
                  "device='cpu' has this");
  }
}

std::string refusal_of(const RnnSpec& spec, const Extent& extent) {
  return error_of<EngineError>([&] { check_limits("forward", spec, extent); });
}

TEST(Limits, NameTheSizeAndTheRemedy) {
  RnnSpec spec = lstm(4);
  EXPECT_EQ(refusal_of(spec, {1 << 20, 1, 1 << 20}), "");
  EXPECT_EQ(
      refusal_of(spec, {std::int64_t{1} << 31}),
      "[forward] batch is 2147483648, expected at most 2147483647 on 'cudnn', which counts in "
      "32 bits; split the batch");
  EXPECT_EQ(refusal_of(spec, {std::int64_t{1} << 30}),
            "[forward] num_layers * num_dirs * batch * num_units is 4294967296, expected at most "
            "2147483647 on 'cudnn', which counts in 32 bits; split the batch");
  spec.input_size = std::int64_t{1} << 31;
  EXPECT_EQ(refusal_of(spec, {1}),
            "[forward] input_size is 2147483648, expected at most 2147483647 on 'cudnn', which "
            "counts in 32 bits; use device='cpu'");
}

TEST(Limits, SayHowManyRowsOfThatManyStepsFit) {
  RnnSpec spec = lstm(4);
  spec.input_size = 1000;
  const auto of = [&](std::int64_t batch, std::int64_t time, const std::string& remedy) {
    EXPECT_EQ(refusal_of(spec, {batch, time, batch * time}),
              "[forward] time * batch * width of the widest layer is " +
                  std::to_string(batch * time * 1000) +
                  ", expected at most 2147483647 on 'cudnn', which counts in 32 bits; " + remedy);
  };
  of(300, 10000, "split the batch: 214 rows of 10000 steps fit");
  of(3, 1000000, "split the batch: 2 rows of 1000000 steps fit");
  of(2, 2147483, "split the batch: 1 rows of 2147483 steps fit");
  of(2, 2147484, "not even one row of these steps fits: use device='cpu'");
}

TEST(Limits, AreOfEverySize) {
  constexpr std::int64_t kMost = 2147483647;
  const std::string rest =
      " is 2147483648, expected at most 2147483647 on 'cudnn', which counts in 32 bits; use "
      "device='cpu'";
  EXPECT_EQ(refusal_of(lstm(kMost + 1), {}), "[forward] num_units" + rest);
  RnnSpec spec = lstm(1);
  spec.direction = Direction::kBidirectional;
  spec.num_layers = std::int64_t{1} << 30;
  EXPECT_EQ(refusal_of(spec, {}), "[forward] num_layers * num_dirs" + rest);
  spec = lstm(std::int64_t{1} << 30);
  spec.direction = Direction::kBidirectional;
  EXPECT_EQ(refusal_of(spec, {}), "[forward] num_dirs * output width" + rest);
  // All that fits.
  spec = lstm(1);
  spec.input_size = 1;
  EXPECT_EQ(refusal_of(spec, {kMost, 1, kMost}), "");
  // The second layer counts where there is one, and the matrix of a projection.
  spec = lstm(16384);
  EXPECT_EQ(refusal_of(spec, {}), "");
  spec.num_layers = 2;
  EXPECT_EQ(refusal_of(spec, {}), "[forward] elements of the matrices of layer 1" + rest);
  spec = lstm(26000);
  spec.input_size = 1;
  spec.num_proj = 18000;
  EXPECT_EQ(refusal_of(spec, {}),
            "[forward] elements of the matrices of layer 0 is 2340104000, expected at most "
            "2147483647 on 'cudnn', which counts in 32 bits; use device='cpu'");
}

TEST(Limits, AreLoweredByTheEnvironmentAndNeverRaised) {
  RnnSpec spec = lstm(4);
  spec.num_layers = 2;  // of 144 and 128 elements
  for (const auto& [text, most] : {std::pair{"1", "1"}, {"143", "143"}}) {
    const Setting least("OPENRNN_CUDNN_MAX_WEIGHTS", text);
    EXPECT_EQ(refusal_of(spec, {}), std::string("[forward] elements of the matrices of layer 0 is "
                                                "144, expected at most ") +
                                        most +
                                        " on 'cudnn', which counts in 32 bits; use device='cpu'");
  }
  for (const auto& [text, too_many] : {std::pair{"271", true}, {"272", false}}) {
    const Setting some("OPENRNN_CUDNN_MAX_WEIGHTS", text);
    EXPECT_EQ(refusal_of(spec, {}), "");
    EXPECT_EQ(has_too_many_weights(spec), too_many) << text;
  }
  RnnSpec large = lstm(16384);
  large.input_size = 16384;
  EXPECT_FALSE(has_too_many_weights(large)) << "one layer is not divided";
  for (const char* text : {"", "0", "-5", "99999999999"}) {
    const Setting none("OPENRNN_CUDNN_MAX_WEIGHTS", text), no_time("OPENRNN_CUDNN_MAX_TIME", text);
    EXPECT_NE(refusal_of(large, {}).find("expected at most 2147483647 "), std::string::npos);
    EXPECT_EQ(refusal_of(spec, {}), "") << text;
    EXPECT_EQ(most_steps(), 65535) << text;
  }
  for (const std::int64_t steps : {1, 2, 65534}) {
    const Setting time("OPENRNN_CUDNN_MAX_TIME", std::to_string(steps));
    EXPECT_EQ(most_steps(), steps);
  }
}

// Layer 0 of such a network has no matrices of its input, the later ones have.
TEST(Limits, OfWeightsLeaveOutWhatIsSkipped) {
  RnnSpec spec = lstm(8192);
  spec.input_size = 8192;
  spec.input_mode = InputMode::kSkipInput;
  spec.num_layers = 4;
  EXPECT_FALSE(has_too_many_weights(spec));
  spec.num_layers = 5;
  EXPECT_TRUE(has_too_many_weights(spec));
}

TEST(Limits, AreOfTheElementsOfALayerToo) {
  RnnSpec spec = lstm(512);
  spec.direction = Direction::kBidirectional;
  EXPECT_EQ(refusal_of(spec, {2097, 1000, 2'097'000}), "");
  EXPECT_EQ(refusal_of(spec, {2100, 1000, 2'100'000}),
            "[forward] time * batch * width of the widest layer is 2150400000, expected at most "
            "2147483647 on 'cudnn', which counts in 32 bits; split the batch: 2097 rows of 1000 "
            "steps fit");
  spec.input_size = 1 << 18;
  EXPECT_NE(refusal_of(spec, {1, 8192, 8192}).find("not even one row of these steps fits"),
            std::string::npos);
}

TEST(Limits, CountStepsWithoutPadding) {
  ForwardArgs args;
  args.max_time = 100;
  args.batch = 3;
  EXPECT_EQ(extent_of(args).vectors, 300);
  const std::vector<std::int32_t> lengths = {100, 0, 7};
  args.sequence_lengths = lengths.data();
  EXPECT_EQ(extent_of(args).vectors, 107);
  args.batch = 2;
  EXPECT_EQ(extent_of(args).vectors, 100) << "of the rows of the call";
  args.batch = 3;
  const Setting chunk("OPENRNN_CUDNN_MAX_TIME", "10");
  EXPECT_EQ(extent_of(args).vectors, 17);
  EXPECT_EQ(extent_of(args).time, 10);
}

TEST(Limits, OfWeightsAreOfALayer) {
  // Four layers of 2^29 elements: 2^31 in all.
  RnnSpec spec = lstm(8192);
  spec.input_size = 8192;
  spec.num_layers = 3;
  EXPECT_FALSE(has_too_many_weights(spec));
  spec.num_layers = 4;
  EXPECT_TRUE(has_too_many_weights(spec));
  EXPECT_EQ(refusal_of(spec, {}), "");
  spec.num_units = spec.input_size = 16384;
  EXPECT_EQ(refusal_of(spec, {}),
            "[forward] elements of the matrices of layer 0 is 2147483648, expected at most "
            "2147483647 on 'cudnn', which counts in 32 bits; use device='cpu'");
  // The largest that there is.
  RnnSpec plain = lstm(1);
  plain.mode = RnnMode::kRnnTanh;
  plain.input_size = 2147483646;
  EXPECT_EQ(refusal_of(plain, {}), "");
  plain.num_layers = 2;
  EXPECT_TRUE(has_too_many_weights(plain));
}

TEST(Parts, SkipOnlyWhatTheNetworkSkips) {
  RnnSpec spec = lstm(6);
  spec.input_size = 6;
  spec.num_layers = 3;
  spec.training.seed = 5;
  EXPECT_FALSE(part_of(spec, 0, 1, -1).skips_input());
  EXPECT_EQ(part_of(spec, 0, 1, -1).training.seed, std::nullopt) << "masks are the network's";
  // As wide as the units, too.
  spec.input_mode = InputMode::kAutoSelect;
  EXPECT_TRUE(part_of(spec, 0, 1, -1).skips_input());
  EXPECT_FALSE(part_of(spec, 1, 2, -1).skips_input());
  spec.direction = Direction::kBidirectional;
  for (const int direction : {0, 1}) EXPECT_EQ(part_of(spec, 1, 1, direction).num_dirs(), 1);
}

TEST(Parts, AreNetworksOfTheirOwn) {
  RnnSpec spec = lstm(6);
  spec.input_size = 6;
  spec.num_layers = 3;
  spec.num_proj = 4;
  spec.direction = Direction::kBidirectional;
  spec.input_mode = InputMode::kAutoSelect;
  spec.training.dropout = 0.5;
  const RnnSpec first = part_of(spec, 0, 1, -1), later = part_of(spec, 1, 2, -1);
  EXPECT_TRUE(first.skips_input());
  EXPECT_EQ(first.num_layers, 1);
  EXPECT_EQ(first.training.dropout, 0.0);
  EXPECT_EQ(first.num_dirs(), 2);
  EXPECT_FALSE(later.skips_input());
  EXPECT_EQ(later.input_size, 8);
  EXPECT_EQ(later.num_layers, 2);
  const RnnSpec backward = part_of(spec, 1, 1, 1);
  EXPECT_EQ(backward.num_dirs(), 1);
  EXPECT_EQ(backward.input_size, 8);
  EXPECT_EQ(backward.hidden_size(), 4);
}

}  // namespace
}  // namespace openrnn::cudnn
