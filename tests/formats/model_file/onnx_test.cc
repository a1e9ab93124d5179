// ONNX models: what is read, what is refused and how it is said, what is written.

#include <gtest/gtest.h>
#include <openrnn/formats_onnx.h>

#include "../../../fuzz/entries/model_file.h"
#include "formats/onnx/onnx_file.h"
#include "formats/temp_folder.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

std::string onnx_corpus(const std::string& name) { return source_file("fuzz/corpus/onnx/" + name); }

struct Refusal {
  const char* file;
  const char* part;
};

constexpr Refusal kRefusals[] = {
    {"cut", "the model is malformed: end of buffer exception"},
    {"cut_in_graph", "the model is malformed: end of buffer exception"},
    {"shape_overflow", "tensor 't' has impossible shape [1099511627776, 1099511627776]"},
    {"negative_size", "tensor 't' has impossible shape [-2]"},
    {"too_few_bytes", "tensor 't' has 7 bytes, expected 8 of float32 [2]"},
    {"too_many_bytes", "tensor 't' has 9 bytes, expected 8 of float32 [2]"},
    {"no_elements", "tensor 't' has 0 bytes, expected 8 of float32 [2]"},
    {"unknown_type", "tensor 't' has element type 99, expected one that ONNX has"},
    {"no_type", "tensor 't' has element type 0, expected one that ONNX has"},
    {"two_fields", "a tensor has elements in two fields, expected one"},
    {"wrong_field", "of float32 has its elements in field 7, expected field 4 or raw data"},
    {"wire_type_of_elements", "tensor 't' of float32 has elements of another wire type"},
    {"wire_type_of_strings", "tensor 't' of string has elements of another wire type"},
    {"half_a_float", "a tensor is malformed: invalid length"},
    {"wide_int8", "tensor 't' has the element 300, expected one of int8"},
    {"bool", "tensor 't' has the bool 2, expected 0 or 1"},
    {"long_varint", "a tensor is malformed: varint too long"},
    {"strings", "tensor 't' has 1 strings, expected 2 of string [2]"},
    {"tensor_name", "a tensor is named 'a\\012b', expected printable UTF-8"},
    {"unnamed", "an initializer has no name, expected one"},
    {"twice", "'t' is defined twice, expected once"},
    {"external_above",
     "external data is in '../m.data', expected the name of a file in the folder"},
    {"external_path", "external data is in '/etc/passwd', expected the name of a file"},
    {"external_nowhere", "external data is in '', expected the name of a file"},
    {"external_offset", "has 8 bytes at 18446744073709551615 of 'm.data', expected them inside"},
    {"external_number", "external data has the number '-1', expected a decimal one"},
    {"external_overflow", "external data has the number '18446744073709551616'"},
    {"external_length", "tensor 't' has 7 bytes, expected 8 of float32 [2]"},
    {"external_end", "has 8 bytes at 1000 of 'm.data', expected them inside its 12"},
    {"external_and_raw", "a tensor with external data has elements or strings, expected neither"},
    {"two_graphs", "the model has two graphs, expected one"},
    {"no_graph", "the model has no graph, expected one"},
    {"two_opsets", "the domain '' has two versions, expected one"},
    {"wire_type", "a graph is malformed: unknown pbf field type"},
    {"long_length", "a graph is malformed: end of buffer"},
    {"node_without_operator", "a node has no operator, expected one"},
    {"output_twice", "'b' is defined twice, expected once"},
    {"output_of_initializer", "'b' is defined twice, expected once"},
    {"attribute_without_name", "an attribute has no name, expected one"},
    {"attribute_twice", "node 'b' has the attribute 'k' twice, expected it once"},
    {"attribute_of_two_kinds", "an attribute has values of two kinds, expected one"},
    {"node_name", "the name '\\033[2J' is there, expected printable UTF-8"},
    {"input_without_name", "an input or output has no name, expected one"},
    {"deep", "graphs are nested deeper than 32"},
};

OnnxModel parse(const std::string& name) {
  const std::string path = onnx_corpus(name);
  static const std::string twelve(12, '\1');
  return parse_onnx(std::make_shared<FileSource>(path), [](const std::string& data) {
    return std::make_unique<MemorySource>(data, twelve);
  });
}

TEST(Onnx, EveryFaultIsNamed) {
  std::size_t files = 1;  // of the segment below
  for (const Refusal& one : kRefusals) {
    EXPECT_MESSAGE(FormatError, parse(std::string("bad_") + one.file), one.part);
    ++files;
  }
  std::size_t bad = 0;
  for (const auto& item : std::filesystem::directory_iterator(source_file("fuzz/corpus/onnx"))) {
    bad += item.path().filename().string().starts_with("bad_");
  }
  EXPECT_EQ(files, bad);
  EXPECT_MESSAGE(UnsupportedError, parse("bad_segment"), "has a tensor in segments");
}

TEST(Onnx, TheErrorSaysWhere) {
  const std::string path = onnx_corpus("bad_twice");
  try {
    read_onnx(path);
    FAIL() << "no error";
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), path);
    EXPECT_EQ(error.offset(), 4u);  // the graph, behind the version and two bytes of its own
  }
}

TEST(Onnx, GraphNodesAndAttributes) {
  const OnnxModel model = read_onnx(onnx_corpus("good_lstm"));
  EXPECT_EQ(model.opset(), 14);
  EXPECT_EQ(model.producer_name, "by hand");
  ASSERT_EQ(model.metadata.size(), 1u);
  EXPECT_EQ(model.metadata[0].second, "value\nof two lines");
  ASSERT_EQ(model.graph.nodes.size(), 1u);
  const OnnxNode& node = model.graph.nodes[0];
  EXPECT_EQ(node.op_type, "LSTM");
  EXPECT_EQ(node.label(), "rnn");
  EXPECT_EQ(node.inputs, (std::vector<std::string>{"x", "W", "R", "B", "", "", "", "P"}));
  EXPECT_EQ(node.input(4), "");
  EXPECT_EQ(node.input(9), "");
  EXPECT_EQ(node.output(2), "c");
  EXPECT_EQ(std::get<std::int64_t>(node.find("hidden_size")->value), 3);
  EXPECT_EQ(std::get<float>(node.find("clip")->value), 3.5f);
  EXPECT_EQ(std::get<std::string>(node.find("direction")->value), "bidirectional");
  EXPECT_EQ(std::get<std::vector<std::string>>(node.find("activations")->value)[3], "HardSigmoid");
  EXPECT_EQ(std::get<std::vector<float>>(node.find("activation_alpha")->value)[1], 0.5f);
  EXPECT_EQ(node.find("layout"), nullptr);
  EXPECT_EQ(model.graph.outputs[2].name, "c");
  EXPECT_FALSE(model.graph.outputs[2].shape);
}

TEST(Onnx, TypedFieldsAreTheBytesOfRawData) {
  const ModelFile raw(onnx_corpus("good_lstm")), typed(onnx_corpus("good_typed_fields"));
  EXPECT_EQ(raw.kind(), FileKind::kOnnx);
  EXPECT_EQ(identify_file(raw.path()).what, "an ONNX model");
  ASSERT_EQ(raw.tensors().size(), 4u);
  for (const TensorInfo& info : raw.tensors()) {
    EXPECT_EQ(raw.read_bytes(info.name), typed.read_bytes(info.name)) << info.name;
    EXPECT_EQ(typed.info(info.name).shape, info.shape);
    EXPECT_TRUE(typed.view(info.name)) << info.name;
  }
}

TEST(Onnx, ExternalDataIsMappedFromTheFolder) {
  const TempFolder folder;
  const std::string bytes = read_file(onnx_corpus("good_external"));
  write_raw(folder / "m.onnx", bytes);
  EXPECT_THROW(read_onnx(folder / "m.onnx"), IoError);
  const float values[] = {1.5f, -2.5f, 7.0f};
  write_raw(folder / "m.data", std::string(reinterpret_cast<const char*>(values), sizeof values));
  const ModelFile file(folder / "m.onnx");
  EXPECT_EQ(file.read("t").as<float>()[1], -2.5f);
  EXPECT_EQ(file.view("t")->as<float>()[0], 1.5f);
}

TEST(Onnx, ConstantsOfSubgraphsHaveTheirPlace) {
  const ModelFile file(onnx_corpus("good_subgraphs"));
  std::vector<std::string> names;
  for (const TensorInfo& info : file.tensors()) names.push_back(info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"y.else_branch.w", "y.else_branch.k",
                                             "y.then_branch.w", "y.then_branch.k"}));
}

TEST(Onnx, WrittenModelsAreReadAsTheyWere) {
  const TempFolder folder;
  for (const char* name :
       {"good_lstm", "good_typed_fields", "good_all_types", "good_subgraphs", "good_no_weights"}) {
    const OnnxModel model = read_onnx(onnx_corpus(name));
    write_onnx(folder / "m", model);
    const OnnxModel again = read_onnx(folder / "m");
    EXPECT_EQ(encode_onnx(again), encode_onnx(model)) << name;
    ASSERT_EQ(again.graph.initializers.size(), model.graph.initializers.size()) << name;
    for (std::size_t i = 0; i < model.graph.initializers.size(); ++i) {
      const OnnxTensor &one = model.graph.initializers[i], &other = again.graph.initializers[i];
      EXPECT_EQ(one.bytes, other.bytes) << one.name;
      EXPECT_EQ(one.strings, other.strings) << one.name;
      EXPECT_EQ(one.shape, other.shape) << one.name;
      EXPECT_EQ(one.element_type, other.element_type) << one.name;
    }
  }
}

TEST(Onnx, WhatCannotBeWritten) {
  const TempFolder folder;
  OnnxModel model = read_onnx(onnx_corpus("good_lstm"));
  model.graph.initializers[0].shape = {5};
  EXPECT_MESSAGE(ArgumentError, write_onnx(folder / "m", model),
                 "[write_onnx] tensor 'W' of float32 [5] has 192 bytes");
  model = read_onnx(onnx_corpus("good_lstm"));
  model.graph.nodes[0].attributes[0].value = std::monostate();
  EXPECT_MESSAGE(ArgumentError, write_onnx(folder / "m", model), "has no value, expected one");
  EXPECT_FALSE(std::filesystem::exists(folder / "m"));
}

// Each prefix of a file: errors, never a crash; a shorter one is whole only where a field ends.
TEST(Onnx, EveryCut) {
  const std::string whole = read_file(onnx_corpus("good_all_types"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    read_model_file(whole.substr(0, size));
  }
  EXPECT_TRUE(read_model_file(whole));
}

TEST(Onnx, OtherProtocolBuffersAreNoModel) {
  for (const std::string bytes : {std::string("\x08\x01\x12\x00", 4), std::string("\x0a\x02hi", 4),
                                  std::string("\x3a\x00", 2)}) {
    EXPECT_FALSE(looks_like_onnx(MemorySource("m", bytes)));
  }
}

}  // namespace
}  // namespace openrnn::formats
