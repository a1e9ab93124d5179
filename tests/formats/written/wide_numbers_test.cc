// Sizes, places and numbers past 32 bits come through whole, in every format that has them. No file
// here is large: a tensor without elements may have any other sizes.
#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>
#include <openrnn/formats_onnx.h>

#include <protozero/pbf_writer.hpp>

#include "base/message.h"
#include "formats/coding.h"
#include "formats/onnx/onnx_file.h"
#include "formats/temp_folder.h"
#include "formats/torch/objects_writer.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

constexpr std::int64_t kWide = (std::int64_t{1} << 40) + 3, kWider = (std::int64_t{1} << 41) + 5;

TEST(WideNumbers, OfShapes) {
  const Array first(DType::kFloat32, {kWide, 0, kWider}), second(DType::kInt64, {0, kWider});
  const std::vector<NamedView> tensors{{"a", first.view()}, {"b", second.view()}};
  const TempFolder folder;
  write_safetensors(folder / "safetensors", tensors);
  write_torch_state_dict(folder / "torch", tensors);
  write_npz(folder / "npz", tensors);
  write_hdf5(folder / "hdf5", tensors);
  write_keras_archive(folder / "keras", tensors,
                      std::vector<NamedValue>{{"config.json", "{}"s}, {"metadata.json", "{}"s}});
  TensorBundleWriter bundle(folder / "bundle");
  for (const NamedView& tensor : tensors) bundle.add(tensor.name, tensor.values);
  bundle.finish();
  OnnxModel model{.ir_version = 9};
  model.graph.initializers = {OnnxTensor::of("a", first), OnnxTensor::of("b", second)};
  write_onnx(folder / "onnx", model);
  for (const char* name : {"safetensors", "torch", "npz", "hdf5", "keras", "bundle", "onnx"}) {
    const ModelFile file(folder / name);
    EXPECT_EQ(file.tensors().size(), 2U) << name;
    EXPECT_EQ(file.info("a").shape, first.shape()) << name;
    EXPECT_EQ(file.info("b").shape, second.shape()) << name;
    EXPECT_EQ(file.read("a").shape(), first.shape()) << name;
    EXPECT_EQ(file.info("a").dtype, "float32") << name;
    EXPECT_EQ(file.info("b").bytes, 0U) << name;
  }
  write_npy(folder / "npy", second.view());
  EXPECT_EQ(read_npy(folder / "npy").shape(), second.shape());
}

TEST(WideNumbers, OfValues) {
  const std::vector<NamedValue> values = {
      {"a", kWide},
      {"b", -kWider},
      {"c", std::vector<std::int64_t>{kWider, INT64_MIN, INT64_MAX, -1}},
      {"d", std::vector<double>{1e300, -5e-324}},
  };
  const Array one(DType::kFloat32, {1});
  const TempFolder folder;
  write_npz(folder / "npz", std::vector<NamedView>{{"t", one.view()}}, values);
  write_hdf5(folder / "hdf5", {}, values);
  TorchObject root{.kind = TorchObject::Kind::kDict};
  for (const NamedValue& value : values) root.add(value.name, TorchObject::of(value.value));
  write_torch_objects("call", folder / "torch", root);
  for (const char* name : {"npz", "hdf5", "torch"}) {
    const ModelFile file(folder / name);
    ASSERT_EQ(file.values().size(), values.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(file.values()[i].name, values[i].name) << name;
      EXPECT_EQ(file.values()[i].value, values[i].value) << name;
    }
  }
}

TEST(WideNumbers, OfAnOnnxModel) {
  OnnxModel model{.ir_version = kWide};
  model.opsets = {{"", kWider}};
  model.graph.nodes = {
      {.op_type = "A",
       .attributes = {{"i", -kWide}, {"list", std::vector<std::int64_t>{kWide, -kWider}}}}};
  model.graph.inputs = {{.name = "x", .element_type = 1, .shape = {{{kWide, ""}, {kWider, ""}}}}};
  const std::string bytes = encode_onnx(model);
  const OnnxModel again =
      parse_onnx(std::make_shared<MemorySource>("m", bytes),
                 [](const std::string& name) { return std::make_unique<MemorySource>(name, ""); });
  EXPECT_EQ(again.ir_version, kWide);
  EXPECT_EQ(again.opset(), kWider);
  const std::vector<OnnxAttribute>& attributes = again.graph.nodes.at(0).attributes;
  EXPECT_EQ(std::get<std::int64_t>(attributes.at(0).value), -kWide);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(attributes.at(1).value),
            (std::vector<std::int64_t>{kWide, -kWider}));
  const std::vector<OnnxDim>& dims = *again.graph.inputs.at(0).shape;
  EXPECT_EQ(dims.at(0).size, kWide);
  EXPECT_EQ(dims.at(1).size, kWider);
}

std::string said_of(const std::string& bytes) {
  const TempFolder folder;
  write_raw(folder / "m", bytes);
  write_raw(folder / "data", "x");
  const std::string said = thrown<FormatError>([&] { ModelFile(folder / "m"); });
  return said.substr(said.find("] ") + 2);
}

// Where elements are that are not there: the place and the size are said as they are.
TEST(WideNumbers, OfPlaces) {
  std::string onnx;
  {
    protozero::pbf_writer out(onnx);
    out.add_int64(1, 9);
    protozero::pbf_writer graph(out, 7);
    protozero::pbf_writer tensor(graph, 5);
    tensor.add_int64(1, kWider);
    tensor.add_int32(2, 2);
    tensor.add_string(8, "t");
    const std::pair<std::string, std::string> entries[] = {
        {"location", "data"}, {"offset", message(kWide)}, {"length", message(kWider)}};
    for (const auto& [key, value] : entries) {
      protozero::pbf_writer entry(tensor, 13);
      entry.add_string(1, key);
      entry.add_string(2, value);
    }
    tensor.add_enum(14, 1);
  }
  EXPECT_EQ(said_of(onnx), message("tensor 't' has ", kWider, " bytes at ", kWide,
                                   " of 'data', expected them inside its 1"));
  const std::string header = message(R"({"c":{"dtype":"U8","shape":[)", kWider - kWide,
                                     R"(],"data_offsets":[)", kWide, ",", kWider, "]}}");
  std::string safetensors;
  put_fixed(&safetensors, std::uint64_t{header.size()});
  const std::string said = said_of(safetensors + header);
  EXPECT_NE(said.find(message(kWide)), std::string::npos) << said;
}

}  // namespace
}  // namespace openrnn::formats
