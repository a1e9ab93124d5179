// Every field of an ONNX model, there and back; element types, their ranges and their fields.
#include <gtest/gtest.h>
#include <openrnn/formats_onnx.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <protozero/pbf_writer.hpp>

#include "formats/onnx/onnx_file.h"
#include "formats/onnx/types.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

using protozero::pbf_writer;

OnnxModel parsed(const std::string& bytes) {
  return parse_onnx(std::make_shared<MemorySource>("m", bytes), [](const std::string& name) {
    return std::make_unique<MemorySource>(name, "");
  });
}

// ---- Fields ------------------------------------------------------------------------------------

std::string shown(const OnnxGraph& graph);

std::string shown(const OnnxTensor& tensor) {
  std::string out = tensor.name + ":" + tensor.type_name() + to_string(tensor.shape) + "=";
  out += tensor.bytes;
  for (const std::string& text : tensor.strings) out += "'" + text + "'";
  return out;
}

struct ShowValue {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(float value) const { return "f" + std::to_string(value); }
  std::string operator()(std::int64_t value) const { return "i" + std::to_string(value); }
  std::string operator()(const std::string& value) const { return "s" + value; }
  std::string operator()(const std::shared_ptr<const OnnxTensor>& value) const {
    return "t" + shown(*value);
  }
  std::string operator()(const std::shared_ptr<const OnnxGraph>& value) const {
    return "g" + shown(*value);
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string out = "[";
    for (const T& value : values) out += (*this)(value) + " ";
    return out + "]" + std::to_string(sizeof(T));
  }
};

std::string shown(const OnnxValueInfo& info) {
  std::string out = info.name + ":" + std::to_string(info.element_type);
  if (!info.shape) return out;
  for (const OnnxDim& dim : *info.shape) out += "," + std::to_string(dim.size) + dim.symbol;
  return out + ";";
}

std::string shown(const OnnxGraph& graph) {
  std::string out = "graph " + graph.name + "\n";
  for (const OnnxNode& node : graph.nodes) {
    out += node.domain + "::" + node.op_type + " " + node.name + "(";
    for (const std::string& name : node.inputs) out += name + ",";
    out += ")->";
    for (const std::string& name : node.outputs) out += name + ",";
    for (const OnnxAttribute& one : node.attributes) {
      out += " " + one.name + "=" + std::visit(ShowValue(), one.value);
    }
    out += "\n";
  }
  for (const OnnxTensor& tensor : graph.initializers) out += shown(tensor) + "\n";
  for (const OnnxValueInfo& info : graph.inputs) out += "in " + shown(info) + "\n";
  for (const OnnxValueInfo& info : graph.outputs) out += "out " + shown(info) + "\n";
  return out;
}

OnnxModel full_model() {
  const OnnxTensor tensor = OnnxTensor::of("t", array_of<float>({2}, {1.5f, -2.0f}));
  OnnxTensor texts{.name = "s", .element_type = kOnnxString, .shape = {2}, .strings = {"x", ""}};
  const OnnxGraph inner{.name = "inner", .nodes = {{.op_type = "Relu", .outputs = {"q"}}}};
  OnnxModel model{.ir_version = 9, .producer_name = "us", .producer_version = "1.2"};
  model.opsets = {{"", 17}, {"com.other", 3}};
  model.metadata = {{"k", "v"}, {"l", ""}};
  model.graph = {.name = "outer",
                 .nodes = {{.name = "n",
                            .op_type = "LSTM",
                            .domain = "com.other",
                            .inputs = {"x", "", "t"},
                            .outputs = {"y", ""},
                            .attributes = {{"f", 0.5f},
                                           {"i", std::int64_t{-3}},
                                           {"text", std::string("forward")},
                                           {"tensor", std::make_shared<const OnnxTensor>(tensor)},
                                           {"graph", std::make_shared<const OnnxGraph>(inner)},
                                           {"floats", std::vector<float>{1.0f, 2.5f}},
                                           {"ints", std::vector<std::int64_t>{7, -8}},
                                           {"texts", std::vector<std::string>{"a", "b"}},
                                           {"zero", 0.0f},
                                           {"none", std::int64_t{0}},
                                           {"no_text", std::string()},
                                           {"no_floats", std::vector<float>()},
                                           {"no_ints", std::vector<std::int64_t>()},
                                           {"no_texts", std::vector<std::string>()}}},
                           {.op_type = "Add", .inputs = {"y"}, .outputs = {"z"}}},
                 .initializers = {tensor, texts},
                 .inputs = {{.name = "x",
                             .element_type = 1,
                             .shape = {{{2, ""}, {-1, "batch"}, {-1, ""}, {0, ""}}}},
                            {.name = "w", .element_type = 7, .shape = std::vector<OnnxDim>()},
                            {.name = "v", .element_type = 11}},
                 .outputs = {{.name = "z"}}};
  return model;
}

TEST(OnnxFields, AllAreWrittenAndRead) {
  const OnnxModel model = full_model();
  const std::string bytes = encode_onnx(model);
  const OnnxModel again = parsed(bytes);
  EXPECT_EQ(shown(again.graph), shown(model.graph));
  EXPECT_EQ(again.ir_version, 9);
  EXPECT_EQ(again.producer_name, "us");
  EXPECT_EQ(again.producer_version, "1.2");
  EXPECT_EQ(again.opsets, model.opsets);
  EXPECT_EQ(again.metadata, model.metadata);
  EXPECT_EQ(again.opset(), 17);
  EXPECT_EQ(OnnxModel().opset(), 1);
  EXPECT_TRUE(again.functions.empty());
}

TEST(OnnxFields, ValuesOfAFile) {
  const TempFolder folder;
  OnnxModel model = full_model();
  model.graph.nodes[1].attributes = {{"value", std::make_shared<const OnnxTensor>(OnnxTensor::of(
                                                   "", array_of<std::int64_t>({1}, {5})))}};
  model.graph.nodes[1].op_type = "Constant";
  write_onnx(folder / "m", model);
  const ModelFile file(folder / "m");
  std::vector<std::string> names, values;
  for (const TensorInfo& info : file.tensors()) names.push_back(info.name);
  // Strings are none, nor are tensors that are attributes of other operators.
  EXPECT_EQ(names, (std::vector<std::string>{"t", "z"}));
  EXPECT_EQ(file.read("z").as<std::int64_t>()[0], 5);
  for (const NamedValue& value : file.values()) values.push_back(value.name);
  EXPECT_EQ(values, (std::vector<std::string>{"ir_version", "producer_name", "producer_version",
                                              "opset_import", "inputs", "outputs", "metadata.k",
                                              "metadata.l"}));
  EXPECT_EQ(std::get<std::int64_t>(file.values()[0].value), 9);
  EXPECT_EQ(std::get<std::string>(file.values()[2].value), "1.2");
  using Texts = std::vector<std::string>;
  EXPECT_EQ(std::get<Texts>(file.values()[3].value), (Texts{"ai.onnx 17", "com.other 3"}));
  EXPECT_EQ(std::get<Texts>(file.values()[4].value), (Texts{"x", "w", "v"}));
  EXPECT_EQ(std::get<Texts>(file.values()[5].value), Texts{"z"});
}

// A function, a sparse initializer and lists in packed fields, which we do not write.
TEST(OnnxFields, WhatOthersWrite) {
  std::string bytes;
  {
    pbf_writer out(bytes);
    out.add_int64(1, 9);
    pbf_writer graph(out, 7);
    {
      pbf_writer node(graph, 1);
      node.add_string(4, "Op");
      node.add_string(7, "ai.onnx");
      pbf_writer attribute(node, 5);
      attribute.add_string(1, "f");
      const float floats[] = {1.0f, 2.0f};
      attribute.add_packed_float(7, std::begin(floats), std::end(floats));
    }
    {
      pbf_writer node(graph, 1);
      node.add_string(4, "Op");
      for (const char* name : {"i", "none"}) {
        pbf_writer attribute(node, 5);
        attribute.add_string(1, name);
        const std::int64_t ints[] = {3, -1};
        if (name[0] == 'i') attribute.add_packed_int64(8, std::begin(ints), std::end(ints));
        if (name[0] == 'n') attribute.add_enum(20, 9);
      }
    }
    pbf_writer sparse(graph, 15);
    pbf_writer values(sparse, 1);
    values.add_string(8, "sparse");
  }
  {
    pbf_writer out(bytes);
    pbf_writer function(out, 25);
    function.add_string(1, "f");
    function.add_string(10, "d");
  }
  const OnnxModel model = parsed(bytes);
  EXPECT_EQ(model.functions, std::vector<std::string>{"d::f"});
  EXPECT_EQ(model.graph.sparse_initializers, std::vector<std::string>{"sparse"});
  EXPECT_EQ(shown(model.graph),
            "graph \n::Op ()-> f=[f1.000000 f2.000000 ]4\n::Op ()-> i=[i3 i-1 ]8 none=none\n");
}

// Types and dimensions may say what they mean; and each message may have fields of later versions.
TEST(OnnxFields, DenotationsArePassedOver) {
  std::string bytes;
  {
    pbf_writer out(bytes);
    pbf_writer graph(out, 7);
    pbf_writer input(graph, 11);
    input.add_string(30, "later");
    input.add_string(1, "x");
    pbf_writer type(input, 2);
    type.add_string(6, "IMAGE");
    pbf_writer tensor(type, 1);
    tensor.add_string(30, "later");
    tensor.add_int32(1, 7);
    pbf_writer shape(tensor, 2);
    shape.add_string(30, "later");
    for (const std::int64_t size : {5, 0, 6}) {
      pbf_writer dim(shape, 1);
      dim.add_string(3, "DATA_BATCH");
      if (size == 0) dim.add_string(2, "batch");
      if (size != 0) dim.add_int64(1, size);
      dim.add_string(30, "later");
    }
  }
  EXPECT_EQ(shown(parsed(bytes).graph), "graph \nin x:7,5,-1batch,6;\n");
}

TEST(OnnxFields, Depth) {
  const auto nested = [](int depth) {
    OnnxGraph graph;
    for (int i = 0; i < depth; ++i) {
      OnnxGraph outer;
      outer.nodes = {{.op_type = "If",
                      .attributes = {{"g", std::make_shared<const OnnxGraph>(std::move(graph))}}}};
      graph = std::move(outer);
    }
    OnnxModel model;
    model.graph = std::move(graph);
    return encode_onnx(model);
  };
  EXPECT_NO_THROW(parsed(nested(32)));
  EXPECT_MESSAGE(FormatError, parsed(nested(33)), "graphs are nested deeper than 32");
}

TEST(OnnxFields, NamesAreDefinedOnce) {
  const OnnxTensor tensor = OnnxTensor::of("t", array_of<float>({1}, {1.0f}));
  const auto encoded = [](OnnxGraph graph) {
    OnnxModel model;
    model.graph = std::move(graph);
    return encode_onnx(model);
  };
  // Old files list initializers as inputs, and outputs may be left out.
  EXPECT_NO_THROW(parsed(encoded({.nodes = {{.op_type = "A", .outputs = {"", ""}}},
                                  .initializers = {tensor},
                                  .inputs = {{.name = "t"}}})));
  const OnnxGraph twice[] = {
      {.initializers = {tensor, tensor}},
      {.inputs = {{.name = "t"}, {.name = "t"}}},
      {.nodes = {{.op_type = "A", .outputs = {"t"}}}, .initializers = {tensor}},
      {.nodes = {{.op_type = "A", .outputs = {"t"}}}, .inputs = {{.name = "t"}}},
      {.nodes = {{.op_type = "A", .outputs = {"t", "t"}}}},
      {.nodes = {{.op_type = "A", .outputs = {"t"}}, {.op_type = "B", .outputs = {"t"}}}},
  };
  for (const OnnxGraph& graph : twice) {
    EXPECT_MESSAGE(FormatError, parsed(encoded(graph)), "'t' is defined twice, expected once");
  }
}

// ---- Element types -----------------------------------------------------------------------------

struct Type {
  std::int32_t number;
  const char* name;
  unsigned bits, field;
};

constexpr Type kTypes[] = {
    {1, "float32", 32, 4},       {2, "uint8", 8, 5},
    {3, "int8", 8, 5},           {4, "uint16", 16, 5},
    {5, "int16", 16, 5},         {6, "int32", 32, 5},
    {7, "int64", 64, 7},         {8, "string", 0, 6},
    {9, "bool", 8, 5},           {10, "float16", 16, 5},
    {11, "float64", 64, 10},     {12, "uint32", 32, 11},
    {13, "uint64", 64, 11},      {14, "complex64", 64, 4},
    {15, "complex128", 128, 10}, {16, "bfloat16", 16, 5},
    {17, "float8_e4m3fn", 8, 5}, {18, "float8_e4m3fnuz", 8, 5},
    {19, "float8_e5m2", 8, 5},   {20, "float8_e5m2fnuz", 8, 5},
    {21, "uint4", 4, 5},         {22, "int4", 4, 5},
    {23, "float4_e2m1fn", 4, 5}, {24, "float8_e8m0fnu", 8, 5},
    {25, "uint2", 2, 5},         {26, "int2", 2, 5},
};

TEST(OnnxTypes, AsTheFormatNumbersThem) {
  for (const Type& type : kTypes) {
    const OnnxType* found = find_onnx_type(type.number);
    ASSERT_TRUE(found) << type.name;
    EXPECT_EQ(found->name, type.name);
    EXPECT_EQ(found->bits, type.bits) << type.name;
    EXPECT_EQ(found->field, type.field) << type.name;
    EXPECT_EQ(OnnxTensor{.element_type = type.number}.type_name(), type.name);
  }
  EXPECT_EQ(find_onnx_type(0), nullptr);
  EXPECT_EQ(find_onnx_type(27), nullptr);
  EXPECT_EQ(OnnxTensor{.element_type = 27}.type_name(), "element type 27");
  EXPECT_EQ(dtype_of_onnx(27), std::nullopt);
  EXPECT_EQ(dtype_of_onnx(3), std::nullopt);
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64,
                            DType::kInt32, DType::kInt64, DType::kUInt8, DType::kBool}) {
    EXPECT_EQ(dtype_of_onnx(onnx_element_type(dtype)), dtype);
  }
}

// A tensor of elements in one field, each a value of its own.
template <class Put>
std::string with_elements(std::int32_t type, const Shape& shape, const Put& put) {
  std::string bytes;
  pbf_writer out(bytes);
  pbf_writer graph(out, 7);
  {
    pbf_writer tensor(graph, 5);
    tensor.add_packed_int64(1, shape.begin(), shape.end());
    tensor.add_int32(2, type);
    tensor.add_string(8, "t");
    put(&tensor);
  }
  return bytes;
}

std::string one_integer(std::int32_t type, unsigned field, std::int64_t value) {
  const std::string bytes =
      with_elements(type, {1}, [&](pbf_writer* out) { out->add_int64(field, value); });
  return std::string(parsed(bytes).graph.initializers.at(0).bytes);
}

TEST(OnnxTypes, IntegersOfEveryWidth) {
  for (const Type& type : kTypes) {
    if (type.field != 5 || type.number == kOnnxBool) continue;
    const unsigned bits = std::max(type.bits, 8u);
    const std::int64_t half = std::int64_t{1} << (bits - 1);
    for (const std::int64_t value : {std::int64_t{0}, -half, 2 * half - 1, half / 3}) {
      std::string expected(bits / 8, '\0');
      std::memcpy(expected.data(), &value, expected.size());
      EXPECT_EQ(one_integer(type.number, 5, value), expected) << type.name;
    }
    for (const std::int64_t value : {-half - 1, 2 * half}) {
      EXPECT_MESSAGE(
          FormatError, one_integer(type.number, 5, value),
          "tensor 't' has the element " + std::to_string(value) + ", expected one of " + type.name);
    }
  }
  EXPECT_EQ(one_integer(9, 5, 1), "\1");
  EXPECT_EQ(one_integer(7, 7, -2), "\xfe" + std::string(7, '\xff'));
  EXPECT_EQ(one_integer(12, 11, 258), std::string("\2\1\0\0", 4));
  EXPECT_EQ(one_integer(13, 11, -1), std::string(8, '\xff'));
}

TEST(OnnxTypes, FloatsPackedAndAlone) {
  const float floats[] = {1.5f, -2.0f};
  const double doubles[] = {1.5, -2.0};
  for (const bool packed : {false, true}) {
    const std::string bytes = with_elements(1, {2}, [&](pbf_writer* out) {
      if (packed) return out->add_packed_float(4, std::begin(floats), std::end(floats));
      for (const float value : floats) out->add_float(4, value);
    });
    const OnnxModel model = parsed(bytes);
    EXPECT_EQ(model.graph.initializers.at(0).array().as<float>()[1], -2.0f);
    const std::string wide = with_elements(11, {2}, [&](pbf_writer* out) {
      if (packed) return out->add_packed_double(10, std::begin(doubles), std::end(doubles));
      for (const double value : doubles) out->add_double(10, value);
    });
    const OnnxModel of_doubles = parsed(wide);
    EXPECT_EQ(of_doubles.graph.initializers.at(0).array().as<double>()[0], 1.5);
  }
  const std::string complex = with_elements(14, {1}, [&](pbf_writer* out) {
    for (const float value : floats) out->add_float(4, value);
  });
  EXPECT_EQ(parsed(complex).graph.initializers.at(0).bytes.size(), 8u);
  const OnnxModel of_complex = parsed(complex);
  EXPECT_MESSAGE(UnsupportedError, of_complex.graph.initializers.at(0).array(),
                 "[onnx] tensor 't' has element type complex64, expected one of OpenRNN's dtypes");
  OnnxTensor odd = OnnxTensor::of("o", array_of<float>({2}, {1.0f, 2.0f}));
  odd.shape = {3};
  EXPECT_MESSAGE(ArgumentError, odd.array(),
                 "[onnx] tensor 'o' has 8 bytes, expected 12 of shape [3]");
}

// Elements of less than a byte lie together in raw data, and the last byte may be part empty.
TEST(OnnxTypes, ElementsOfLessThanAByte) {
  const auto raw = [](std::int32_t type, std::int64_t count, std::size_t bytes) {
    return with_elements(type, {count},
                         [&](pbf_writer* out) { out->add_bytes(9, std::string(bytes, 'x')); });
  };
  EXPECT_NO_THROW(parsed(raw(21, 3, 2)));
  EXPECT_NO_THROW(parsed(raw(21, 4, 2)));
  EXPECT_NO_THROW(parsed(raw(25, 5, 2)));
  EXPECT_MESSAGE(FormatError, parsed(raw(21, 5, 2)),
                 "tensor 't' has 2 bytes, expected 3 of uint4 [5]");
  EXPECT_MESSAGE(FormatError, parsed(raw(21, 2, 2)), "has 2 bytes, expected 1 of uint4 [2]");
}

// ---- What is a model ---------------------------------------------------------------------------

bool looks(const std::function<void(pbf_writer*)>& put) {
  std::string bytes;
  pbf_writer out(bytes);
  put(&out);
  return looks_like_onnx(MemorySource("m", bytes));
}

TEST(OnnxFields, WhatLooksLikeAModel) {
  const auto of_version = [](std::int64_t version) {
    return looks([&](pbf_writer* out) {
      out->add_int64(1, version);
      out->add_string(7, "");
    });
  };
  EXPECT_TRUE(of_version(1));
  EXPECT_TRUE(of_version(999));
  EXPECT_FALSE(of_version(0));
  EXPECT_FALSE(of_version(1000));
  for (std::uint32_t field = 1; field <= 30; ++field) {
    const bool known = field == 2 || field == 3 || field == 4 || field == 6 || field == 7 ||
                       field == 8 || field == 14 || field == 20 || field == 25 || field == 26;
    EXPECT_EQ(looks([&](pbf_writer* out) {
                out->add_int64(1, 8);
                out->add_string(7, "");
                out->add_string(field, "x");
              }),
              known)
        << field;
    EXPECT_EQ(looks([&](pbf_writer* out) {
                out->add_int64(1, 8);
                out->add_int64(field, 3);
                out->add_string(7, "");
              }),
              field == 1 || field == 5)
        << field;
  }
}

}  // namespace
}  // namespace openrnn::formats
