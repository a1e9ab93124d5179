// Whole models and networks as the tool runs and compares them, and how its faults end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/out_of_memory.h"
#include "cli/commands.h"
#include "cli/model/difference.h"
#include "cli/model/input.h"
#include "cli/model/whole.h"
#include "formats/temp_folder.h"
#include "openrnn/formats_model_file.h"
#include "openrnn/runtime.h"
#include "support/expect_error.h"

namespace openrnn::cli {
namespace {

using formats::TempFolder;
using Sizes = std::vector<std::int64_t>;

MappedLayer input_of(const std::string& name, Sizes shape, const std::string& dtype = "float32") {
  return {
      .name = name, .kind = "input", .options = {{"shape", std::move(shape)}, {"dtype", dtype}}};
}

MappedLayer recurrent(std::map<std::string, PlainValue> options = {}) {
  options["network"] = std::string("net");
  return {.name = "rnn", .kind = "recurrent", .inputs = {{"x", 0}}, .options = std::move(options)};
}

Array numbers(DType dtype, Shape shape, double step) {
  Array values(DType::kFloat64, std::move(shape));
  double next = -0.5;
  for (double& value : values.as<double>()) value = next += step;
  return cast(values.view(), dtype);
}

// y = x W of a layer without a bias.
MappedModel scaled_by(float factor, Sizes shape = {-1, 2}) {
  MappedModel model;
  const std::vector<float> kernel{factor, 0, 0, factor};
  model.layers = {input_of("x", std::move(shape)),
                  {.name = "y",
                   .kind = "dense",
                   .inputs = {{"x", 0}},
                   .options = {{"units", std::int64_t{2}}, {"use_bias", false}},
                   .weights = {{"kernel", Array::of<float>({2, 2}, kernel)}}}};
  model.outputs = {{"y", 0}};
  return model;
}

TEST(WholeModels, AreMoreThanNetworksBehindInputs) {
  MappedModel model;
  const auto whole = [&](MappedLayer layer) {
    model.layers = {input_of("x", {-1, -1, 2}), std::move(layer)};
    return is_whole(model);
  };
  EXPECT_FALSE(is_whole(model));
  EXPECT_FALSE(whole(recurrent()));
  EXPECT_TRUE(whole(recurrent({{"return_sequences", false}})));
  EXPECT_TRUE(whole(recurrent({{"merge", std::string("sum")}})));
  EXPECT_TRUE(whole(recurrent({{"reverse", true}})));
  EXPECT_TRUE(whole(recurrent({{"return_state", true}})));
  MappedLayer two = recurrent();
  two.inputs.push_back({"x", 0});
  EXPECT_TRUE(whole(two));
  MappedLayer other = recurrent();
  other.inputs[0].layer = "z";
  EXPECT_TRUE(whole(other));
  EXPECT_TRUE(whole({.name = "d", .kind = "dropout", .inputs = {{"x", 0}}}));
}

TEST(WholeModels, SayWhatDoesNotFit) {
  const TempFolder folder;
  RunFlags flags;
  flags.model = "m";
  flags.input = folder / "x.npy";
  flags.output = folder / "y.npy";
  write_npy(flags.input, numbers(DType::kFloat32, {3, 4}, 0.1).view());
  const auto refused = [&](const MappedModel& model) {
    return error_of<ArgumentError>([&] { run_whole(flags, model); });
  };
  EXPECT_EQ(refused(scaled_by(2)),
            "[run] --input has shape [3, 4], expected [-1, 2] of the whole model, batch first");
  MappedModel both = scaled_by(2);
  both.layers.insert(both.layers.begin(), input_of("z", {-1, 2}));
  EXPECT_EQ(refused(both), "[run] 'm' has 2 inputs, expected a model of one, or --network NAME");
  const std::string rest =
      " with a whole model, expected --network NAME beside it: it is of one network";
  for (const auto& [flag, set] : {std::pair<std::string, void (*)(RunFlags&)>{
                                      "--lengths", [](RunFlags& f) { f.lengths = "n"; }},
                                  {"--state", [](RunFlags& f) { f.state = "s"; }},
                                  {"--stream", [](RunFlags& f) { f.stream = 2; }}}) {
    RunFlags with = flags;
    set(with);
    EXPECT_EQ(error_of<ArgumentError>([&] { run_whole(with, scaled_by(2)); }),
              "[run] " + flag + rest);
  }
  flags.input = folder / "none.npy";
  EXPECT_EQ(refused(scaled_by(2)),
            "[openrnn] --input '" + flags.input + "': no such file, expected one");
}

// A file of one row has no axis of the batch, and neither has what is written; NumPy has no
// bfloat16.
TEST(WholeModels, WriteWhatTheyCompute) {
  const TempFolder folder;
  RunFlags flags;
  flags.input = folder / "x.npy";
  flags.output = folder / "y.npy";
  const Array x = numbers(DType::kFloat64, {2}, 0.25);
  write_npy(flags.input, x.view());
  testing::internal::CaptureStdout();
  run_whole(flags, scaled_by(3));
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "output y float32 [2] in " + flags.output + "\n");
  const Array y = read_npy(flags.output);
  ASSERT_EQ(y.shape(), Shape{2});
  EXPECT_EQ(y.as<float>()[1], 0.0F);
  EXPECT_EQ(y.as<float>()[0], -0.75F);

  MappedModel pair = scaled_by(3);
  pair.layers[0].options["dtype"] = std::string("bfloat16");
  pair.layers[1].weights[0].values =
      cast(pair.layers[1].weights[0].values.view(), DType::kBfloat16);
  pair.layers.push_back({.name = "z",
                         .kind = "activation",
                         .inputs = {{"y", 0}},
                         .options = {{"activation", std::string("relu")}}});
  pair.outputs = {{"y", 0}, {"z", 0}};
  EXPECT_EQ(error_of<ArgumentError>([&] { run_whole(flags, pair); }),
            "[run] --output '" + flags.output +
                "' of a model of 2 outputs, expected a file that ends in .safetensors");
  flags.output = folder / "y.safetensors";
  testing::internal::CaptureStdout();
  run_whole(flags, pair);
  testing::internal::GetCapturedStdout();
  const ModelFile file(flags.output);
  EXPECT_EQ(file.read("y").dtype(), DType::kFloat32);
  EXPECT_EQ(file.read("y").as<float>()[0], -0.75F);
  EXPECT_EQ(file.read("z").as<float>()[0], 0.0F);
}

TEST(WholeModels, AreComparedByTheirOutputs) {
  const WholeDifference same = whole_difference(scaled_by(2), scaled_by(2)),
                        other = whole_difference(scaled_by(2), scaled_by(3)),
                        twice = whole_difference(scaled_by(2), scaled_by(4));
  EXPECT_EQ(same.values, 3 * 2);
  EXPECT_EQ(same.largest, 0.0);
  EXPECT_GT(other.largest, 0.5);
  EXPECT_NEAR(twice.largest, 2.0 * other.largest, 1e-6);
  const WholeDifference open =
      whole_difference(scaled_by(2, {-1, -1, 2}), scaled_by(2, {-1, -1, 2}));
  EXPECT_EQ(open.values, 3 * 11 * 2);
  EXPECT_EQ(whole_difference(scaled_by(NAN), scaled_by(NAN)).largest, 0.0);
  EXPECT_EQ(whole_difference(scaled_by(2), scaled_by(NAN)).largest, HUGE_VAL);
  MappedModel pair = scaled_by(2);
  pair.outputs.push_back({"x", 0});
  EXPECT_EQ(error_of<ArgumentError>([&] { whole_difference(scaled_by(2), pair); }),
            "[convert] what was written has 2 outputs, expected 1");
  MappedModel wide = scaled_by(2);
  wide.layers[1].options["units"] = std::int64_t{1};
  wide.layers[1].weights[0].values = Array(DType::kFloat32, {2, 1});
  EXPECT_EQ(error_of<ArgumentError>([&] { whole_difference(scaled_by(2), wide); }),
            "[convert] what was written has an output [3, 1], expected [3, 2]");
}

TEST(Networks, AreComparedFromTheirStates) {
  // Without inputs, relu(1 h + 0) is h: what a network begins with is what it puts out.
  const RnnSpec spec{.mode = RnnMode::kRnnRelu, .num_layers = 2, .num_units = 1, .input_size = 1};
  const ParamsLayout layout(spec);
  MappedNetwork network{.spec = spec, .params = Array(DType::kFloat32, {params_size(spec)})};
  for (std::int64_t l = 0; l < 2; ++l) {
    const ParamRegion& r = layout.weight(l, 0, ParamRole::kRecurrentWeight, 0);
    network.params.as<float>()[static_cast<std::size_t>(r.offset)] = 1.0F;
  }
  MappedNetwork begun = network, nan = network;
  begun.initial_h = Array::of<float>({2, 1}, std::vector<float>{0.25F, 0.75F});
  EXPECT_EQ(difference_of(network, network).values, 11 * 3 + 2 * 3);
  EXPECT_EQ(difference_of(network, begun).largest, 0.75);
  EXPECT_EQ(difference_of(begun, begun).largest, 0.0);
  begun.initial_h = Array::of<float>({2, 1}, std::vector<float>{0.875F, 0.75F});
  EXPECT_EQ(difference_of(begun, network).largest, 0.875) << "of the states, too";
  for (float& value : nan.params.as<float>()) value = NAN;
  EXPECT_EQ(difference_of(network, nan).largest, HUGE_VAL);
  EXPECT_EQ(difference_of(nan, nan).largest, 0.0);
  const RnnSpec lstm{.num_units = 3, .input_size = 2, .num_proj = 2};
  MappedNetwork cells{.spec = lstm, .params = initialize_params(ParamsLayout(lstm), 1)};
  MappedNetwork with_cells = cells;
  with_cells.initial_c = Array::of<float>({1, 3}, std::vector<float>{9.0F, 0.0F, 0.0F});
  EXPECT_EQ(difference_of(cells, cells).values, 11 * 3 * 2 + 3 * 2 + 3 * 3);
  EXPECT_GT(difference_of(cells, with_cells).largest, 1e-3);
}

// The comparisons draw 3 rows of 11 steps: seed 20 for networks, 21 for whole models.

// The largest value of one of three inputs of a network.
double largest_of_input(std::int64_t input) {
  RandomStream random(20);
  double largest = 0.0;
  for (std::int64_t i = 0; i < std::int64_t{11} * 3 * 3; ++i) {
    const double value = random.normal();
    if (i % 3 == input) largest = std::max(largest, value);
  }
  return largest;
}

// One unit that gives relu of one input against one that gives 0: the largest of that input.
TEST(Networks, AreComparedOnInputsThatAllDiffer) {
  const RnnSpec spec{.mode = RnnMode::kRnnRelu, .num_units = 1, .input_size = 3};
  const MappedNetwork none{.spec = spec, .params = Array(DType::kFloat32, {params_size(spec)})};
  const std::int64_t offset = ParamsLayout(spec).weight(0, 0, ParamRole::kInputWeight, 0).offset;
  std::vector<MappedNetwork> each(3, none);
  for (std::int64_t i = 0; i < 3; ++i) {
    MappedNetwork& one = each[static_cast<std::size_t>(i)];
    one.params.as<float>()[static_cast<std::size_t>(offset + i)] = 1.0F;
    EXPECT_NEAR(difference_of(one, none).largest, largest_of_input(i), 1e-6) << i;
    EXPECT_EQ(difference_of(none, one).largest, difference_of(one, none).largest);
  }
  EXPECT_GT(difference_of(each[0], each[1]).largest, 0.5);
  EXPECT_GT(difference_of(each[1], each[2]).largest, 0.5);
}

// An embedding of one dimension that gives the index itself, against one that gives 0.
TEST(WholeModels, AreComparedOnInputsThatAllDiffer) {
  const auto embedded = [](std::int64_t second, float factor) {
    MappedModel model;
    model.layers = {input_of("a", {-1, 4}, "int32"), input_of("x", {2, 3})};
    for (const auto& [name, vocabulary] :
         {std::pair<const char*, std::int64_t>{"e", 40}, {"f", second}}) {
      Array values(DType::kFloat32, {vocabulary, 1});
      for (std::int64_t i = 0; i < vocabulary; ++i) {
        values.as<float>()[static_cast<std::size_t>(i)] = factor * static_cast<float>(i);
      }
      model.layers.push_back({.name = name,
                              .kind = "embedding",
                              .inputs = {{"a", 0}},
                              .options = {{"vocabulary", vocabulary}, {"dim", std::int64_t{1}}},
                              .weights = {{"embeddings", std::move(values)}}});
    }
    model.outputs = {{"f", 0}, {"x", 0}};
    return model;
  };
  for (const std::int64_t second : {50, 40, 7}) {
    RandomStream random(21);
    double largest = 0.0;
    const double most = static_cast<double>(std::min<std::int64_t>(second, 40));
    for (int i = 0; i < 3 * 4; ++i) {
      largest = std::max(largest, std::fmod(std::floor(std::abs(random.normal()) * 1e4), most));
    }
    const WholeDifference found = whole_difference(embedded(second, 1), embedded(second, 0));
    EXPECT_EQ(found.largest, largest) << second;
    EXPECT_EQ(found.values, 3 * 4 + 2 * 3);
  }
  RandomStream random(21);
  double largest = 0.0;
  for (int i = 0; i < 3 * 11 * 2; ++i) largest = std::max(largest, std::abs(random.normal()));
  EXPECT_NEAR(whole_difference(scaled_by(0, {-1, -1, 2}), scaled_by(2, {-1, -1, 2})).largest,
              2.0 * largest, 1e-6);
}

TEST(Inputs, BecomeWhatAModelTakes) {
  const Array bytes = Array::of<std::uint8_t>({3}, std::vector<std::uint8_t>{0, 7, 255});
  EXPECT_EQ(as_floating(bytes, DType::kFloat32).as<float>()[2], 255.0F);
  const Array wide = Array::of<std::int64_t>({2}, std::vector<std::int64_t>{-3, 1LL << 40});
  EXPECT_EQ(as_floating(wide, DType::kFloat64).as<double>()[1], 0x1p40);
  const auto indices = [](std::vector<double> values) {
    return as_indices(Array::of<double>({static_cast<std::int64_t>(values.size())}, values));
  };
  EXPECT_EQ(indices({-2147483648.0, 2147483647.0}).as<std::int32_t>()[1], INT32_MAX);
  for (const auto& [value, text] : {std::pair(0.5, "0.5"),
                                    {2147483648.0, "2147483648"},
                                    {-2147483649.0, "-2147483649"},
                                    {double(NAN), "nan"}}) {
    EXPECT_EQ(error_of<ArgumentError>([&, value = value] {
                indices({1, 2, value});
              }),
              std::string("[run] --input has ") + text + " at 2, expected 32-bit integers");
  }
}

// 1: those of the machine; 2: those of the user.
TEST(Faults, EndWithTheCodeOfWhoseTheyAre) {
  const auto expect = [](const std::exception& error, int code, const std::string& text) {
    const Fault fault = fault_of(error);
    EXPECT_EQ(fault.code, code) << text;
    EXPECT_EQ(fault.text, text);
  };
  expect(ArgumentError("a"), 2, "a");
  expect(TypeError("a"), 2, "a");
  expect(StateError("a"), 2, "a");
  expect(UnsupportedError("a"), 2, "a");
  expect(FormatError("p", 3, "a"), 2, "[p @ 3] a");
  expect(IoError("a"), 1, "a");
  expect(EngineError("a"), 1, "a");
  expect(std::runtime_error("a"), 1, "a");
  expect(std::bad_alloc(), 1,
         "[memory] this machine has too little for these sizes, expected smaller ones");
  expect(OutOfMemory(7), 1, OutOfMemory(7).what());
}

TEST(Faults, OfPathsNameTheirFlags) {
  const TempFolder folder;
  const std::string none = folder / "none", prefix = folder / "m";
  EXPECT_EQ(error_of<ArgumentError>([&] { require_file("--x", none); }),
            "[openrnn] --x '" + none + "': no such file, expected one");
  EXPECT_EQ(error_of<ArgumentError>([&] { require_file("--x", folder.path()); }),
            "[openrnn] --x '" + folder.path() + "' is a folder, expected a file");
  EXPECT_EQ(error_of<ArgumentError>([&] { require_model("model", prefix); }),
            "[openrnn] model '" + prefix + "': no such file, expected one");
  require_model("model", folder.path());
  formats::write_raw(prefix + ".index", "x");
  require_model("model", prefix);
  require_file("--x", prefix + ".index");
}

TEST(Faults, OfAnArithmeticAreThoseOfItsWords) {
  EXPECT_FALSE(choice_of({}).math || choice_of({}).weights_dtype);
  const train::ArithmeticChoice both = choice_of({.math = "bf16x3", .weights_dtype = "int8"});
  EXPECT_EQ(both.math, Math::kBf16x3);
  EXPECT_EQ(both.weights_dtype, WeightsDType::kInt8);
}

}  // namespace
}  // namespace openrnn::cli
