// What writers and readers refuse, word for word: each names its call, the tensor and its figures.
#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>
#include <openrnn/formats_onnx.h>

#include <functional>

#include "base/message.h"
#include "formats/checkpoint_state.h"
#include "formats/temp_folder.h"
#include "support/raw_bundle.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

const std::vector<NamedValue> kTexts = {{"config.json", "{}"s}, {"metadata.json", "{}"s}};

// The calls that write named arrays.
struct Writer {
  const char* call;
  std::function<void(const std::string& path, const std::vector<NamedView>&)> write;
};
const Writer kWriters[] = {
    {"write_safetensors",
     [](const std::string& path, const auto& tensors) { write_safetensors(path, tensors); }},
    {"write_torch_state_dict",
     [](const std::string& path, const auto& tensors) { write_torch_state_dict(path, tensors); }},
    {"write_npz", [](const std::string& path, const auto& tensors) { write_npz(path, tensors); }},
    {"write_hdf5", [](const std::string& path, const auto& tensors) { write_hdf5(path, tensors); }},
    {"write_keras_archive",
     [](const std::string& path, const auto& tensors) {
       write_keras_archive(path, tensors, kTexts);
     }},
};

TEST(WholeMessages, OfNamesThatNoFileHolds) {
  const TempFolder folder;
  const Array a = array_of<float>({1}, {1});
  for (const Writer& writer : kWriters) {
    const auto said = [&](const std::string& name) {
      return thrown<ArgumentError>([&] {
        writer.write(folder / "m", {{"a", a.view()}, {name, a.view()}});
      });
    };
    const auto expected = [&](const std::string& name, const std::string& fault) {
      return message("[", writer.call, "] the name '", name, "' ", fault,
                     ", expected unequal names of printable UTF-8");
    };
    EXPECT_EQ(said(""), expected("", "is empty"));
    EXPECT_EQ(said("a"), expected("a", "is given twice"));
    EXPECT_EQ(said("b\n"), expected("b\\012", "is not printable UTF-8"));
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(WholeMessages, OfPathsInHdf5) {
  const TempFolder folder;
  const Array a = array_of<float>({1}, {1});
  const auto said = [&](const std::string& first, const std::string& second) {
    return thrown<ArgumentError>([&] {
      write_hdf5(folder / "m", std::vector<NamedView>{{first, a.view()}, {second, a.view()}});
    });
  };
  EXPECT_EQ(said("b/c", "b"), "[write_hdf5] 'b' is a group, too, expected a dataset alone");
  EXPECT_EQ(said("b", "b/c"), "[write_hdf5] 'b/c' goes through a dataset, expected groups");
  for (const std::string path : {"/b", "b/", "b//c", "./b"}) {
    EXPECT_EQ(said("a", path),
              "[write_hdf5] '" + path + "' is no path, expected short names between single '/'");
  }
  const std::vector<NamedView> one{{"a", a.view()}};
  const auto of_values = [&](const std::vector<NamedValue>& values) {
    return thrown<ArgumentError>([&] { write_hdf5(folder / "m", one, values); });
  };
  const std::string unequal = "' is no name of an attribute or there twice, expected unequal ones";
  EXPECT_EQ(of_values({{"k", true}, {"k", false}}), "[write_hdf5] 'k" + unequal);
  EXPECT_EQ(of_values({{"a/", true}}), "[write_hdf5] 'a/" + unequal);
  EXPECT_EQ(of_values({{"k", std::vector<std::int64_t>(9000)}}),
            "[write_hdf5] 'k' is an attribute of more than 64 KB, expected lists that are shorter");
  for (const std::size_t missing : {0, 1}) {
    std::vector<NamedValue> values = kTexts;
    values[missing].value = std::int64_t{1};
    EXPECT_EQ(
        thrown<ArgumentError>([&] { write_keras_archive(folder / "m", one, values); }),
        "[write_keras_archive] there is no text '" + kTexts[missing].name + "', expected one");
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(WholeMessages, OfSafetensorsAndNpz) {
  const TempFolder folder;
  const Array a = array_of<float>({1}, {1});
  const std::vector<NamedView> one{{"a", a.view()}};
  const auto said = [&](const std::string& path, const SafetensorsOptions& options) {
    return thrown<ArgumentError>([&] { write_safetensors(path, one, options); });
  };
  EXPECT_EQ(said(folder / "m", {.metadata = {{"k\n", "v"}}}),
            "[write_safetensors] the metadata 'k\\012' is 'v', expected a printable key and UTF-8");
  EXPECT_EQ(said(folder / "m", {.metadata = {{"k", "\xff"}}}),
            "[write_safetensors] the metadata 'k' is '\\377', expected a printable key and UTF-8");
  EXPECT_EQ(said(folder / "m", {.max_shard_bytes = 8}),
            "[write_safetensors] path is '" + folder / "m" +
                "', expected one that ends in .safetensors where it is sharded");
  for (const std::string taken : {"m-00001-of-00001.safetensors", "m.safetensors.index.json"}) {
    write_raw(folder / taken, "x");
    EXPECT_EQ(said(folder / "m.safetensors", {.max_shard_bytes = 8}),
              "[write_safetensors] '" + folder / taken +
                  "' is there already, expected a new name: several files cannot be replaced in "
                  "one step");
    EXPECT_EQ(read_file(folder / taken), "x");
    std::filesystem::remove(folder / taken);
  }
  const Array half(DType::kBfloat16, {2});
  const std::vector<NamedView> pair{{"a", a.view()}, {"h", half.view()}};
  EXPECT_EQ(thrown<UnsupportedError>([&] { write_npz(folder / "m", pair); }),
            "[write_npz] tensor 'h' is bfloat16, which NumPy's files have no name for");
  EXPECT_TRUE(folder.names().empty());
}

TEST(WholeMessages, OfOnnx) {
  const TempFolder folder;
  const auto said = [&](OnnxGraph graph) {
    OnnxModel model;
    model.graph = std::move(graph);
    return thrown<ArgumentError>([&] { write_onnx(folder / "m", model); });
  };
  OnnxTensor short_of = OnnxTensor::of("w", array_of<float>({2}, {1, 2}));
  short_of.shape = {3};
  OnnxTensor strings;
  strings.name = "s";
  strings.element_type = 8;
  strings.shape = {2};
  strings.strings = {"one"};
  OnnxGraph graph;
  graph.initializers = {short_of};
  EXPECT_EQ(said(graph),
            "[write_onnx] tensor 'w' of float32 [3] has 8 bytes or strings, expected "
            "those of its shape");
  graph.initializers = {strings};
  EXPECT_EQ(said(graph),
            "[write_onnx] tensor 's' of string [2] has 1 bytes or strings, expected "
            "those of its shape");
  graph.initializers.clear();
  graph.nodes.push_back({.op_type = "Relu", .attributes = {{"k", std::monostate()}}});
  EXPECT_EQ(said(graph), "[write_onnx] attribute 'k' has no value, expected one");
  EXPECT_TRUE(folder.names().empty());
}

TEST(WholeMessages, OfBundles) {
  const TempFolder folder;
  TensorBundleWriter writer(folder / "m");
  for (const std::string& name : {""s, "\0a"s}) {
    EXPECT_EQ(thrown<ArgumentError>([&] { writer.add(name, array_of<float>({1}, {2})); }),
              "[add] a tensor's name is empty or starts with a zero byte");
  }
  writer.add("s", StringTensor{{1, 2}, {"a", "b"}});
  writer.finish();
  EXPECT_EQ(thrown<StateError>([&] { writer.finish(); }),
            "[finish] called after finish() or a failure, expected once");
  const TensorBundleReader reader(folder / "m");
  EXPECT_EQ(thrown<TypeError>([&] { reader.read("s"); }),
            "[read] tensor 's' holds strings, expected numbers");
  EXPECT_EQ(thrown<TypeError>([&] { reader.read_string("s"); }),
            "[read_string] tensor 's' has shape [1, 2], expected a scalar");
  EXPECT_EQ(thrown<IoError>([&] { TensorBundleReader(folder / "n"); }),
            "[TensorBundleReader] " + folder / "n.index" +
                " is missing, expected the prefix of a checkpoint");
  RawBundle raw;
  raw.add("w", {1}).dtype = 22;
  raw.write(folder / "r");
  EXPECT_EQ(thrown<UnsupportedError>([&] { TensorBundleReader(folder / "r").read("w"); }),
            "[read] tensor 'w' has element type uint32, expected float16, bfloat16, float32, "
            "float64, int32, int64, uint8, bool or string");
}

TEST(WholeMessages, OfCheckpointStates) {
  const TempFolder folder;
  const auto said = [&](const CheckpointState& state) {
    return thrown<ArgumentError>([&] { write_checkpoint_state(folder.path(), state); });
  };
  EXPECT_EQ(said({}), "[write_checkpoint_state] latest is empty, expected a checkpoint's prefix");
  CheckpointState state;
  state.latest = "c";
  state.all = {"a", "b", "c"};
  state.timestamps = {1.0, 2.0};
  EXPECT_EQ(said(state), "[write_checkpoint_state] 2 timestamps, expected none or 3");
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace openrnn::formats
