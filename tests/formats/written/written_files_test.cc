// Every byte of a file of each kind that is written, as hashes: of every dtype, of several ranks,
// of every kind of value. The tests of each format say what the bytes mean, and read them again.
#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>
#include <openrnn/formats_onnx.h>

#include "base/message.h"
#include "formats/onnx/types.h"
#include "formats/temp_folder.h"
#include "formats/torch/objects_writer.h"
#include "support/files/fnv.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

// Of the names and the bytes of all files in a folder.
std::string hash_of(const TempFolder& folder) {
  Hash hash;
  for (const std::string& name : folder.names()) {
    hash.add(name);
    hash.add(read_file(folder / name));
  }
  return hash.digits();
}

constexpr DType kAll[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64,
                          DType::kInt32,   DType::kInt64,    DType::kUInt8,   DType::kBool};

// Bytes that differ from those beside them; bools of 0 and 1.
Array filled(DType dtype, const Shape& shape) {
  Array array(dtype, shape);
  auto* const bytes = static_cast<unsigned char*>(array.data());
  for (std::size_t i = 0; i < array.size_bytes(); ++i) {
    bytes[i] = static_cast<unsigned char>(dtype == DType::kBool ? i % 3 == 0 : i * 37 + 11);
  }
  return array;
}

// One of each dtype and rank, named so that no order is that of the names.
struct Sample {
  explicit Sample(bool with_bfloat16 = true) {
    const Shape shapes[] = {{2, 3}, {}, {5}, {1, 2, 3}, {0, 4}, {3, 1}, {7}, {2, 2}};
    for (std::size_t i = 0; i < std::size(kAll); ++i) {
      if (kAll[i] == DType::kBfloat16 && !with_bfloat16) continue;
      names.push_back(message(i % 2 ? "group/z" : "a", 9 - i));
      arrays.push_back(filled(kAll[i], shapes[i]));
    }
    for (std::size_t i = 0; i < 20; ++i) {
      names.push_back(message("group/inner/m", i * 7 % 20));
      arrays.push_back(filled(DType::kUInt8, {static_cast<std::int64_t>(i)}));
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) views.push_back({names[i], arrays[i].view()});
  }
  std::vector<std::string> names;
  std::vector<Array> arrays;
  std::vector<NamedView> views;
};

const std::vector<NamedValue> kValues = {
    {"none", std::monostate()},
    {"yes", true},
    {"no", false},
    {"integer", std::int64_t{-5}},
    {"number", -2.5},
    {"text", "w\xc3\xb6rter \xf0\x9f\x98\x80"s},
    {"bytes", "\xff\xfe"s},
    {"empty", ""s},
    {"integers", std::vector<std::int64_t>{1, -2, INT64_MAX}},
    {"numbers", std::vector<double>{0.1, -1e300}},
    {"texts", std::vector<std::string>{"one", "", "three"}},
    {"no_texts", std::vector<std::string>{}},
};

// The file has one name each time: an index of shards, and PyTorch's archive, hold it.
template <class Write>
std::string written(const Write& write) {
  const TempFolder folder;
  write(folder / "m.safetensors");
  return hash_of(folder);
}

TEST(WrittenFiles, OfTensors) {
  const Sample all, named(false);
  const std::tuple<const char*, std::string, const char*> files[] = {
      {"safetensors", written([&](const std::string& path) { write_safetensors(path, all.views); }),
       "833f40f3360ca82b"},
      {"metadata", written([&](const std::string& path) {
         write_safetensors(path, all.views, {.metadata = {{"b", "1\n"}, {"a", "\xc3\xb6"}}});
       }),
       "029f0f30229131e3"},
      {"shards", written([&](const std::string& path) {
         write_safetensors(path, all.views, {.metadata = {{"k", "v"}}, .max_shard_bytes = 60});
       }),
       "50fc97a2f40f2884"},
      {"state_dict",
       written([&](const std::string& path) { write_torch_state_dict(path, all.views); }),
       "0a3ba191101614fe"},
      {"npz", written([&](const std::string& path) { write_npz(path, named.views, kValues); }),
       "0bf9a07a195855a5"},
      {"npz alone", written([&](const std::string& path) { write_npz(path, named.views); }),
       "3e3fc8a21804bf93"},
      {"hdf5", written([&](const std::string& path) { write_hdf5(path, all.views, kValues); }),
       "0e6b22c5eee8e135"},
      {"keras", written([&](const std::string& path) {
         std::vector<NamedValue> values = kValues;
         values.push_back({"metadata.json", "{}"s});
         values.push_back({"config.json", "{\"a\": 1}"s});
         write_keras_archive(path, all.views, values);
       }),
       "ca2d67c2728be375"},
  };
  for (const auto& [name, hash, expected] : files) EXPECT_EQ(hash, expected) << name;
}

TEST(WrittenFiles, OfNumPy) {
  std::string hashes;
  for (const DType dtype : kAll) {
    if (dtype == DType::kBfloat16) continue;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3, 4}}) {
      hashes +=
          written([&](const std::string& path) { write_npy(path, filled(dtype, shape).view()); });
    }
  }
  const TempFolder folder;
  write_raw(folder / "all", hashes);
  EXPECT_EQ(hash_of(folder), "205e68641182e8e4");
}

TEST(WrittenFiles, OfATensorBundle) {
  const Sample all;
  const TempFolder folder;
  TensorBundleWriter writer(folder / "m");
  for (const NamedView& tensor : all.views) writer.add(tensor.name, tensor.values);
  writer.add("words", StringTensor{{2, 2}, {"", std::string(200, 'w'), "\0"s, "\xff"}});
  writer.add("no words", StringTensor{{0, 4}, {}});
  writer.add_string("config", "{}");
  writer.finish();
  EXPECT_EQ(hash_of(folder), "0b6a68f32206063e");
}

TEST(WrittenFiles, OfObjectsOfTorch) {
  using Kind = TorchObject::Kind;
  const Array weight = filled(DType::kFloat32, {2, 3}), none = filled(DType::kInt64, {0, 3, 2});
  TorchObject root{.kind = Kind::kDict};
  for (const NamedValue& value : kValues) root.add(value.name, TorchObject::of(value.value));
  TorchObject numbered{.kind = Kind::kNumbered}, list{.kind = Kind::kList},
      ordered{.kind = Kind::kOrdered};
  numbered.add("12", TorchObject::of_tensor(weight.view()));
  numbered.add("-3", TorchObject::of(std::int64_t{4}));
  list.add("", TorchObject::of("a"s));
  list.add("", TorchObject::of_tensor(none.view()));
  ordered.add("inner", list);
  root.add("state", numbered);
  root.add("groups", list);
  root.add("model", ordered);
  EXPECT_EQ(written([&](const std::string& path) { write_torch_objects("call", path, root); }),
            "0440a06279c9e033");
}

TEST(WrittenFiles, OfOnnx) {
  OnnxModel model{.ir_version = 9, .producer_name = "us", .producer_version = "1.2"};
  model.opsets = {{"", 17}, {"com.other", 3}};
  model.metadata = {{"k", "v"}, {"l", "two\nlines"}};
  OnnxGraph& graph = model.graph;
  graph.name = "outer";
  std::vector<OnnxAttribute> attributes = {{"f", 0.5f},
                                           {"i", std::int64_t{-3}},
                                           {"text", "forward"s},
                                           {"floats", std::vector<float>{1, 2.5f}},
                                           {"ints", std::vector<std::int64_t>{7, -8}},
                                           {"texts", std::vector<std::string>{"a", ""}}};
  for (const DType dtype : kAll) {
    const OnnxTensor tensor = OnnxTensor::of(std::string(dtype_name(dtype)), filled(dtype, {2, 3}));
    graph.initializers.push_back(tensor);
    attributes.push_back({"t_" + tensor.name, std::make_shared<const OnnxTensor>(tensor)});
  }
  graph.initializers.push_back(
      {.name = "s", .element_type = kOnnxString, .shape = {2}, .strings = {"x", ""}});
  attributes.push_back({"g", std::make_shared<const OnnxGraph>(OnnxGraph{.name = "inner"})});
  graph.nodes = {{.name = "n",
                  .op_type = "LSTM",
                  .domain = "com.other",
                  .inputs = {"x", "", "float32"},
                  .outputs = {"y", ""},
                  .attributes = attributes}};
  graph.inputs = {
      {.name = "x", .element_type = 1, .shape = {{{2, ""}, {-1, "batch"}, {-1, ""}, {0, ""}}}},
      {.name = "v", .element_type = 11}};
  graph.outputs = {{.name = "y", .element_type = 1, .shape = std::vector<OnnxDim>()}};
  EXPECT_EQ(written([&](const std::string& path) { write_onnx(path, model); }), "c6686c79ec8a44df");
}

}  // namespace
}  // namespace openrnn::formats
