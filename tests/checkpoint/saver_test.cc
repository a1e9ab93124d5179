// What a Saver stores, which of raw and canonical wins, and that a failed restore changes nothing.
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "openrnn/layers.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using testing::same_bits;
using testing::thrown;

const char* const kKernel = "rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel";
const char* const kBias = "rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/bias";

// A layer of 2 units over 1 input, whose two biases differ, and a plain variable.
struct Model {
  Graph graph;
  Graph::AsDefault current{graph};
  layers::CudnnLSTM layer{{.network = {.num_units = 2, .training = {.seed = 1}},
                           .bias_initializer = random_uniform_initializer(-1.0, 1.0)}};
  Variable step;

  Model() {
    layer.build({1, 1, 1});
    const std::int64_t zero = 0;
    step = Variable("global_step", Array::of<std::int64_t>({}, {&zero, 1}), false);
  }
  std::vector<Array> values() const {
    std::vector<Array> all;
    for (const Variable& variable : graph.variables()) all.push_back(variable.to_host());
    return all;
  }
  void change() const {
    Array value = layer.kernel().to_host();
    for (float& x : value.as<float>()) x += 1.0f;
    layer.kernel().assign(value.view());
    const std::int64_t nine = 9;
    step.assign(Array::of<std::int64_t>({}, {&nine, 1}).view());
  }
};

bool all_same(const std::vector<Array>& a, const std::vector<Array>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

// The tensors of a file, to be changed and written again.
std::vector<NamedTensor> tensors_of(const std::string& prefix) {
  const TensorBundleReader reader(prefix);
  std::vector<NamedTensor> tensors;
  for (const TensorInfo& info : reader.tensors()) {
    tensors.push_back({info.name, reader.read_value(info.name)});
  }
  return tensors;
}

void drop(std::vector<NamedTensor>& tensors, const std::string& name) {
  const auto is_it = [&](const NamedTensor& tensor) { return tensor.name == name; };
  ASSERT_EQ(std::erase_if(tensors, is_it), 1u) << name;
}

Array& array_named(std::vector<NamedTensor>& tensors, const std::string& name) {
  for (NamedTensor& tensor : tensors) {
    if (tensor.name == name) return std::get<Array>(tensor.value);
  }
  throw ArgumentError("no " + name);
}

TEST(Saver, StoresRawCanonicalAndExtras) {
  const TempFolder folder;
  const Model model;
  Extras extras;
  extras.set_string("config", "{}");
  extras.set_int("calls", 3);
  extras.set_float("best", 0.5);
  Saver().write(folder / "a", extras);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.data-00000-of-00001", "a.index"}));
  const TensorBundleReader reader(folder / "a");
  std::vector<std::string> names;
  for (const TensorInfo& info : reader.tensors()) names.push_back(info.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"cudnn_lstm/opaque_kernel", "global_step", "openrnn/best",
                                      "openrnn/calls", "openrnn/config", kBias, kKernel}));
  EXPECT_EQ(reader.read_string("openrnn/config"), "{}");
  EXPECT_EQ(reader.info(kKernel).shape, (Shape{3, 8}));
}

TEST(Saver, RestoresEveryBitAndTheExtras) {
  const TempFolder folder;
  const Model model;
  const std::vector<Array> before = model.values();
  Extras extras;
  extras.set_int("calls", 7);
  Saver().write(folder / "a", extras);
  EXPECT_TRUE(all_same(before, model.values()));
  model.change();
  const Extras restored = Saver().restore(folder / "a");
  // Halved biases would differ: the raw variable has won.
  EXPECT_TRUE(all_same(before, model.values()));
  EXPECT_EQ(restored.get_int("calls"), 7);
  EXPECT_EQ(restored.values().size(), 1u);
}

TEST(Saver, CanonicalWinsWhereTheyDiffer) {
  const TempFolder folder;
  const Model model;
  Saver().write(folder / "a");
  std::vector<NamedTensor> tensors = tensors_of(folder / "a");
  array_named(tensors, kKernel).as<float>()[5] += 0.25f;
  write_tensor_bundle(folder / "b", tensors);
  Saver().restore(folder / "b");
  const auto stored = model.layer.saveable()->specs();
  EXPECT_TRUE(same_bits(stored[0].tensor, array_named(tensors, kKernel)));
  EXPECT_TRUE(same_bits(stored[1].tensor, array_named(tensors, kBias)));
  const auto halves = model.layer.kernel().to_host();
  EXPECT_EQ(halves.as<float>()[24], halves.as<float>()[32]);  // bW_i and bR_i
}

TEST(Saver, RawAloneWithItsSizeChecked) {
  const TempFolder folder;
  const Model model;
  const std::vector<Array> before = model.values();
  Saver().write(folder / "a");
  std::vector<NamedTensor> tensors = tensors_of(folder / "a");
  drop(tensors, kKernel);
  drop(tensors, kBias);
  write_tensor_bundle(folder / "raw", tensors);
  model.change();
  Saver().restore(folder / "raw");
  EXPECT_TRUE(all_same(before, model.values()));

  array_named(tensors, "cudnn_lstm/opaque_kernel") = Array(DType::kFloat32, {39});
  write_tensor_bundle(folder / "short", tensors);
  EXPECT_EQ(thrown<ArgumentError>([&] { Saver().restore(folder / "short"); }),
            "[Saver::restore] " + (folder / "short") +
                ": tensor cudnn_lstm/opaque_kernel is float32 [39], expected float32 [40]");
}

TEST(Saver, ARawOfAnotherSizeGivesWayToCanonical) {
  const TempFolder folder;
  const Model model;
  Saver().write(folder / "a");
  std::vector<NamedTensor> tensors = tensors_of(folder / "a");
  array_named(tensors, "cudnn_lstm/opaque_kernel") = Array(DType::kFloat32, {39});
  write_tensor_bundle(folder / "b", tensors);
  model.change();
  Saver().restore(folder / "b");
  EXPECT_TRUE(same_bits(model.layer.saveable()->specs()[0].tensor, array_named(tensors, kKernel)));
}

TEST(Saver, AFailedRestoreChangesNothing) {
  const TempFolder folder;
  const Model model;
  Saver().write(folder / "a");
  model.change();
  const std::vector<Array> before = model.values();
  const auto refused = [&](std::vector<NamedTensor> tensors) {
    write_tensor_bundle(folder / "bad", tensors);
    const std::string text = thrown<Error>([&] { Saver().restore(folder / "bad"); });
    EXPECT_TRUE(all_same(before, model.values()));
    return text;
  };
  const std::string at = "[Saver::restore] " + (folder / "bad");
  const std::vector<NamedTensor> whole = tensors_of(folder / "a");

  std::vector<NamedTensor> tensors = whole;
  drop(tensors, "global_step");
  EXPECT_EQ(refused(tensors), at + " lacks 1 of the tensors that the model expects: global_step");
  tensors = whole;
  drop(tensors, kBias);
  tensors.push_back({"extra", Array(DType::kFloat32, {1})});
  EXPECT_EQ(refused(tensors), at + " lacks 1 of the tensors that the model expects: " + kBias +
                                  "; not expected but there: extra");
  tensors = whole;
  array_named(tensors, "global_step") = Array(DType::kInt32, {});
  EXPECT_EQ(refused(tensors), at + ": tensor global_step is int32 [], expected int64 []");
  tensors = whole;
  array_named(tensors, kKernel) = Array(DType::kFloat32, {8, 3});
  EXPECT_EQ(refused(tensors), std::string("[CudnnLSTMSaveable] tensor ") + kKernel +
                                  " has shape [8, 3], expected [3, 8]");
  tensors = whole;
  array_named(tensors, kBias) = Array(DType::kFloat64, {8});
  EXPECT_EQ(refused(tensors),
            std::string("[CudnnLSTMSaveable] tensor ") + kBias + " is float64, expected float32");
}

// A flipped bit anywhere in the data is found, whichever tensor it hits.
TEST(Saver, AFlippedBitChangesNothing) {
  const TempFolder folder;
  const Model model;
  Extras extras;
  extras.set_string("config", "{}");
  Saver().write(folder / "a", extras);
  model.change();
  const std::vector<Array> before = model.values();
  const std::string path = folder / "a.data-00000-of-00001";
  const std::string bytes = read_file(path);
  for (std::size_t at = 0; at < bytes.size(); at += 13) {
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 4);
    formats::write_raw(path, broken);
    EXPECT_NE(thrown<FormatError>([&] { Saver().restore(folder / "a"); }), "") << at;
    EXPECT_TRUE(all_same(before, model.values()));
  }
}

TEST(Saver, UnexpectedTensorsAreIgnoredOrRefused) {
  const TempFolder folder;
  const Model model;
  Extras extras;
  extras.set_string("config", "{}");
  Saver().write(folder / "a", extras);
  std::vector<NamedTensor> tensors = tensors_of(folder / "a");
  for (int i = 0; i < 10; ++i) {
    tensors.push_back({"other/" + std::to_string(i), Array(DType::kFloat32, {1})});
  }
  write_tensor_bundle(folder / "more", tensors);
  Saver().restore(folder / "more");
  EXPECT_EQ(
      thrown<ArgumentError>([&] { Saver().restore(folder / "more", {.refuse_unexpected = true}); }),
      "[Saver::restore] " + (folder / "more") +
          " holds 10 tensors that the model has no place for: other/0, other/1, other/2, "
          "other/3, other/4, other/5, other/6, other/7 and 2 more");
}

TEST(Saver, GivenVariablesAlone) {
  const TempFolder folder;
  const Model model;
  Saver({.variables = {{model.step}}}).write(folder / "step");
  const TensorBundleReader reader(folder / "step");
  ASSERT_EQ(reader.tensors().size(), 1u);
  EXPECT_EQ(reader.tensors()[0].name, "global_step");
  model.change();
  const Array kernel = model.layer.kernel().to_host();
  Saver({.variables = {{model.step}}}).restore(folder / "step");
  EXPECT_EQ(model.step.to_host().as<std::int64_t>()[0], 0);
  EXPECT_TRUE(same_bits(kernel, model.layer.kernel().to_host()));
}

TEST(Extras, AreNamedAndTyped) {
  Extras extras;
  extras.set_int("calls", 1);
  extras.set_string("config", "x");
  EXPECT_EQ(thrown<ArgumentError>([&] { extras.get("loss"); }),
            "[Extras] there is no loss, only calls, config");
  EXPECT_EQ(thrown<TypeError>([&] { extras.get_float("calls"); }),
            "[Extras] calls is int64 [], expected float64 []");
  EXPECT_EQ(thrown<TypeError>([&] { extras.get_string("calls"); }),
            "[Extras] calls holds numbers, expected a string");
  EXPECT_EQ(thrown<TypeError>([&] { extras.get_array("config"); }),
            "[Extras] config holds strings, expected numbers");
  extras.set("none", Array(DType::kInt64, {0}));
  EXPECT_EQ(thrown<TypeError>([&] { extras.get_int("none"); }),
            "[Extras] none is int64 [0], expected int64 []");
  EXPECT_EQ(extras.get_array("none", DType::kInt64, {-1}).size(), 0);
  EXPECT_EQ(thrown<TypeError>([&] {
              extras.get_array("none", DType::kInt64, {-1, 0});
            }),
            "[Extras] none is int64 [0], expected int64 [-1, 0]");
  extras.set("pairs", Array(DType::kInt32, {2, 3}));
  EXPECT_EQ(extras.get_array("pairs", DType::kInt32, {-1, 3}).size(), 6);
  for (const Shape& other : {Shape{3, 3}, Shape{2, 2}, Shape{2}, Shape{2, 3, -1}}) {
    EXPECT_EQ(thrown<TypeError>([&] { extras.get_array("pairs", DType::kInt32, other); }),
              "[Extras] pairs is int32 [2, 3], expected int32 " + to_string(other));
  }
  EXPECT_EQ(thrown<ArgumentError>([&] { Extras().get_string("x"); }),
            "[Extras] there is no x, only nothing");
  extras.set("words", StringTensor{{0}, {}});
  EXPECT_EQ(thrown<TypeError>([&] { extras.get_string("words"); }),
            "[Extras] words holds strings of shape [0], expected one string");
  EXPECT_EQ(thrown<ArgumentError>([&] { extras.set_int("", 1); }),
            "[Extras::set] an empty name, expected one");
  const TempFolder folder;
  const Model model;
  Saver().write(folder / "a", extras);
  EXPECT_EQ(read_extras(folder / "a").get_string("config"), "x");
}

}  // namespace
}  // namespace openrnn
