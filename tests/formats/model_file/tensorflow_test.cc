// Files of TensorFlow as named tensors: folders and prefixes of bundles, version 1, graphs.
#include "formats/tensorflow/tensorflow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "formats/bundle/bundle_proto.h"
#include "formats/coding.h"
#include "formats/table/table.h"
#include "formats/temp_folder.h"
#include "openrnn/formats_model_file.h"
#include "support/files/source_file.h"

namespace openrnn {
namespace {

using formats::MemorySource;
using formats::TempFolder;

// A message's field of bytes; all lengths are below 128.
std::string field(char tag, const std::string& bytes) {
  return std::string(1, static_cast<char>(tag << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
std::string number(char tag, char value) { return {static_cast<char>(tag << 3), value}; }

std::string shape_of(const std::vector<int>& sizes) {
  std::string shape;
  for (const int size : sizes) shape += field(2, number(1, static_cast<char>(size)));
  return shape;
}
std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Rows `start` and on of a tensor of two columns.
formats::TensorSlice rows(std::int64_t start, std::int64_t length) {
  return {{start, length}, {0, -1}};
}
std::string slice_message(int start, int length) {
  return field(1, number(1, static_cast<char>(start)) + number(2, static_cast<char>(length))) +
         field(1, "");
}
std::string v1_entry(const std::string& slice, const std::vector<float>& values) {
  return field(2, field(1, "w") + field(2, slice) + field(3, field(5, floats(values))));
}

// w [3, 2] in slices of 2 and 1 rows.
std::map<std::string, std::string> v1_table(int more_columns = 0) {
  const std::string meta = field(1, "w") + field(2, shape_of({3, 2 + more_columns})) +
                           number(3, 1) + field(4, slice_message(0, 2)) +
                           field(4, slice_message(2, 1));
  return {{"", field(1, field(1, meta))},
          {formats::slice_key("w", rows(0, 2)), v1_entry(slice_message(0, 2), {1, 2, 3, 4})},
          {formats::slice_key("w", rows(2, 1)), v1_entry(slice_message(2, 1), {5, 6})}};
}

std::string problem_of(const std::string& path) {
  try {
    const ModelFile file(path);
    file.verify();
    for (const TensorInfo& info : file.tensors()) file.read(info.name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string problem_of_bytes(const std::string& bytes) {
  const TempFolder folder;
  write_file_atomically(folder / "m", bytes);
  return problem_of(folder / "m");
}

std::vector<float> values_of(const ModelFile& file, const std::string& name) {
  const Array array = file.read(name);
  const std::span<const float> values = array.view().as<float>();
  return {values.begin(), values.end()};
}

TEST(TensorflowFiles, SlicesOfVersionOneAreJoined) {
  const TempFolder folder;
  write_file_atomically(folder / "m", formats::build_table(v1_table()));
  EXPECT_EQ(identify_file(folder / "m").what, "a TensorFlow checkpoint of version 1");
  const ModelFile file(folder / "m");
  EXPECT_EQ(file.kind(), FileKind::kTfCheckpointV1);
  EXPECT_EQ(values_of(file, "w"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(file.info("w").sliced);
}

TEST(TensorflowFiles, BrokenVersionOne) {
  std::map<std::string, std::string> table = v1_table();
  table.erase(formats::slice_key("w", rows(2, 1)));
  EXPECT_NE(problem_of_bytes(formats::build_table(table)).find("has 0 bytes, expected 2 elements"),
            std::string::npos);
  EXPECT_NE(problem_of_bytes(formats::build_table(v1_table(1))).find("expected 6 elements"),
            std::string::npos);
  table = v1_table();
  table.erase("");
  EXPECT_NE(problem_of_bytes(formats::build_table(table)).find("no list of tensors"),
            std::string::npos);
  table = v1_table();
  table[formats::slice_key("x", rows(2, 1))] = table[formats::slice_key("w", rows(2, 1))];
  EXPECT_NE(problem_of_bytes(formats::build_table(table)).find("another key"), std::string::npos);
  const std::string good = formats::build_table(v1_table());
  for (std::size_t size = 1; size < good.size(); size += 7) {
    EXPECT_NE(problem_of_bytes(good.substr(0, size)), "") << size;
  }
}

TEST(TensorflowFiles, ABundleByEveryPath) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "model/variables");
  Array values(DType::kFloat32, {3});
  values.as<float>()[1] = 2.5F;
  const std::vector<NamedTensor> tensors = {{"w", values}, {"text", StringTensor{{}, {"hello"}}}};
  write_tensor_bundle(folder / "model/variables/variables", tensors);
  write_file_atomically(folder / "model/saved_model.pb", "not looked at");
  write_tensor_bundle(folder / "ck", tensors);
  write_checkpoint_state(folder / ".", {.latest = folder / "./ck", .all = {folder / "./ck"}});
  for (const char* path : {"model", "model/variables", "model/saved_model.pb", "ck", "ck.index",
                           "ck.data-00000-of-00001", "."}) {
    const ModelFile file(folder / path);
    EXPECT_EQ(file.kind(), FileKind::kTfCheckpoint) << path;
    EXPECT_EQ(values_of(file, "w"), (std::vector<float>{0, 2.5, 0})) << path;
    EXPECT_EQ(file.read_bytes("text"), "hello");
    EXPECT_TRUE(file.has_checksums());
    EXPECT_EQ(file.view("w")->as<float>()[1], 2.5F);
    file.verify();
  }
  EXPECT_EQ(identify_file(folder / "model").what, "a SavedModel of TensorFlow");
  EXPECT_EQ(identify_file(folder / "ck").what, "a TensorFlow checkpoint");
  EXPECT_THROW(identify_file(folder / "none"), IoError);
  EXPECT_THROW(ModelFile(folder / "none"), IoError);

  std::string data = read_file(folder / "ck.data-00000-of-00001");
  data[5] = static_cast<char>(data[5] ^ 1);
  write_file_atomically(folder / "ck.data-00000-of-00001", data);
  EXPECT_NE(problem_of(folder / "ck").find("has checksum"), std::string::npos);
}

std::string constant(const std::string& name, const std::string& tensor) {
  return field(1, field(1, name) + field(2, "Const") +
                      field(5, field(1, "value") + field(2, field(8, tensor))));
}

TEST(TensorflowFiles, ConstantsOfAGraph) {
  const TempFolder folder;
  const std::string wide = number(1, 1) + field(2, shape_of({2}));
  write_file_atomically(
      folder / "g",
      field(1, field(1, "x") + field(2, "Placeholder")) +
          constant("content", wide + field(4, floats({1, 2}))) +
          constant("list", wide + field(5, floats({3, 4}))) +
          constant("repeated", wide + field(5, floats({5}))) + constant("zeros", wide) +
          constant("integers",
                   number(1, 3) + field(2, shape_of({2})) + field(7, std::string("\x07\x08"))));
  const ModelFile file(folder / "g");
  EXPECT_EQ(file.kind(), FileKind::kTfGraph);
  EXPECT_EQ(file.tensors().size(), 5U);
  EXPECT_EQ(values_of(file, "content"), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(file, "list"), (std::vector<float>{3, 4}));
  EXPECT_EQ(values_of(file, "repeated"), (std::vector<float>{5, 5}));
  EXPECT_EQ(values_of(file, "zeros"), (std::vector<float>{0, 0}));
  EXPECT_EQ(file.read("integers").as<std::int32_t>()[1], 8);
}

TEST(TensorflowFiles, BrokenGraphs) {
  const std::string wide = number(1, 1) + field(2, shape_of({2}));
  const std::string good = constant("a", wide + field(4, floats({1, 2})));
  EXPECT_EQ(problem_of_bytes(good), "");
  EXPECT_NE(problem_of_bytes(good + good).find("is there twice"), std::string::npos);
  EXPECT_NE(problem_of_bytes(constant("a", wide + field(4, "12345"))).find("has 5 bytes"),
            std::string::npos);
  EXPECT_NE(problem_of_bytes(constant("a", wide + field(5, floats({1, 2, 3})))).find("12 bytes"),
            std::string::npos);
  EXPECT_NE(problem_of_bytes(good + good.substr(0, 20)).find("cut short"), std::string::npos);
  // 2^40 elements of which one is stored.
  const std::string huge("\x0a\x07\x08\x80\x80\x80\x80\x80\x20", 9);
  const std::string shape(1, '\x12');
  const std::string bomb = number(1, 1) + field(2, shape + huge.substr(1)) + field(5, floats({1}));
  EXPECT_NE(problem_of_bytes(constant("a", bomb)).find("repeats elements"), std::string::npos);
}

// One constant of `dtype` and a shape, with more fields.
std::string constant_of(int dtype, const std::vector<int>& shape, const std::string& more) {
  return constant("c", number(1, static_cast<char>(dtype)) + field(2, shape_of(shape)) + more);
}
std::string constant_bytes(const std::string& graph) {
  const TempFolder folder;
  write_file_atomically(folder / "g", graph);
  return ModelFile(folder / "g").read_bytes("c");
}
std::string field_of(int tag, const std::string& bytes) {
  std::string out;
  formats::put_varint64(&out, static_cast<std::uint64_t>(tag) << 3 | 2);
  return out + static_cast<char>(bytes.size()) + bytes;
}

// The last element stands for those that follow.
TEST(TensorflowFiles, ConstantsThatAreShort) {
  const auto found = [](const std::vector<int>& shape, const std::vector<float>& given) {
    return constant_bytes(constant_of(1, shape, given.empty() ? "" : field(5, floats(given))));
  };
  EXPECT_EQ(found({4}, {1, 2}), floats({1, 2, 2, 2}));
  EXPECT_EQ(found({2, 2}, {1, 2, 3}), floats({1, 2, 3, 3}));
  EXPECT_EQ(found({4}, {1}), floats({1, 1, 1, 1}));
  EXPECT_EQ(found({2}, {1, 2}), floats({1, 2}));
  EXPECT_EQ(found({2}, {}), floats({0, 0}));
  EXPECT_EQ(found({}, {}), floats({0}));
  EXPECT_EQ(found({0}, {}), "");
  // The bytes of all elements are never repeated.
  EXPECT_NE(problem_of_bytes(constant_of(1, {4}, field(4, floats({1, 2})))).find("has 8 bytes"),
            std::string::npos);
}

// Each type has a list of its own, of fixed numbers or of varints, packed or one by one.
TEST(TensorflowFiles, ListsOfEveryType) {
  struct Type {
    int dtype, list;
    std::size_t fixed, bytes;
  };
  constexpr Type kTypes[] = {
      {1, 5, 4, 4},  {2, 6, 8, 8},    {3, 7, 0, 4},   {4, 7, 0, 1},   {5, 7, 0, 2},
      {6, 7, 0, 1},  {8, 9, 4, 8},    {9, 10, 0, 8},  {10, 11, 0, 1}, {11, 7, 0, 1},
      {12, 7, 0, 1}, {13, 7, 0, 4},   {14, 13, 0, 2}, {15, 7, 0, 2},  {16, 7, 0, 2},
      {17, 7, 0, 2}, {18, 12, 8, 16}, {19, 13, 0, 2}, {22, 16, 0, 4}, {23, 17, 0, 8},
  };
  for (const Type& type : kTypes) {
    const std::size_t one = type.fixed ? type.fixed : type.bytes;
    std::string expected, packed, alone;
    for (std::size_t i = 0; i < 2 * type.bytes / one; ++i) {
      std::string element(one, '\0');
      element[0] = static_cast<char>(i + 1);
      expected += element;
      std::string stored = type.fixed ? element : std::string(1, static_cast<char>(i + 1));
      packed += stored;
      const int wire = type.fixed == 4 ? 5 : type.fixed == 8 ? 1 : 0;
      formats::put_varint64(&alone, static_cast<std::uint64_t>(type.list << 3 | wire));
      alone += stored;
    }
    EXPECT_EQ(constant_bytes(constant_of(type.dtype, {2}, field_of(type.list, packed))), expected)
        << type.dtype;
    EXPECT_EQ(constant_bytes(constant_of(type.dtype, {2}, alone)), expected) << type.dtype;
    // Numbers of another wire type are none of it.
    const char wire = type.fixed ? 0 : 5;
    std::string wrong;
    formats::put_varint64(&wrong, static_cast<std::uint64_t>(type.list << 3 | wire));
    wrong += type.fixed ? std::string(1, '\1') : std::string(4, '\1');
    EXPECT_NE(problem_of_bytes(constant_of(type.dtype, {1}, wrong)).find("is damaged"),
              std::string::npos)
        << type.dtype;
  }
  EXPECT_NE(problem_of_bytes(constant_of(1, {2}, field(5, "12345"))).find("is damaged"),
            std::string::npos);
}

TEST(TensorflowFiles, NodesThatAreConstants) {
  const TempFolder folder;
  const std::string tensor = number(1, 1) + field(2, "") + field(5, floats({1}));
  const auto node = [&](const std::string& name, const std::string& op, const std::string& key) {
    return field(1, name) + field(2, op) + field(5, field(1, key) + field(2, field(8, tensor)));
  };
  const std::string function =
      field(1, field(1, "f")) + field(3, node("k", "Const", "value")) + field(4, "x");
  write_file_atomically(folder / "g", field(1, node("a", "Const", "value")) +
                                          field(1, node("b", "Constant", "value")) +
                                          field(1, node("c", "Const", "dtype")) +
                                          field(2, field(2, "gradient") + field(1, function)) +
                                          field(4, "versions"));
  const ModelFile file(folder / "g");
  std::vector<std::string> names;
  for (const TensorInfo& info : file.tensors()) names.push_back(info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "f/k"}));
  for (const std::string name : {"", "\x01"}) {
    EXPECT_NE(problem_of_bytes(field(1, node("x", "Placeholder", "v")) +
                               field(1, node(name, "Const", "value")))
                  .find("has no name or a control character"),
              std::string::npos);
  }
  // A shape without a rank, and one that is impossible.
  const std::string no_rank = constant("c", number(1, 1) + field(2, number(3, 1)));
  EXPECT_NE(problem_of_bytes(no_rank).find("is damaged or has an impossible shape"),
            std::string::npos);
}

TEST(TensorflowFiles, WhatBeginsAsAGraph) {
  const std::string good = field(1, field(1, "x") + field(2, "Placeholder"));
  const auto begins = [](const std::string& bytes) {
    return formats::starts_as_tf_graph(bytes, bytes.size());
  };
  EXPECT_TRUE(begins(good));
  EXPECT_TRUE(begins(field(1, field(1, "x") + field(2, "_Op>2"))));
  EXPECT_FALSE(begins(field(2, field(1, "x") + field(2, "Op"))));
  EXPECT_FALSE(begins(field(1, field(2, "x") + field(2, "Op"))));
  EXPECT_FALSE(begins(field(1, field(1, "x") + field(3, "Op"))));
  EXPECT_FALSE(begins(field(1, field(1, "") + field(2, "Op"))));
  EXPECT_FALSE(begins(field(1, field(1, "x") + field(2, ""))));
  EXPECT_FALSE(begins(field(1, field(1, "x") + field(2, "O p"))));
  EXPECT_FALSE(begins(field(1, field(1, "\x01") + field(2, "Op"))));
  // A node may not be longer than the file.
  EXPECT_TRUE(formats::starts_as_tf_graph(good, static_cast<std::uint64_t>(good[1])));
  EXPECT_FALSE(formats::starts_as_tf_graph(good, static_cast<std::uint64_t>(good[1]) - 1));
}

// The message and those first inside it, each cut at every length; the lengths around it fit.
std::vector<std::string> cuts_of(const std::string& message) {
  std::vector<std::string> cuts;
  for (std::size_t depth = 0; depth < 3; ++depth) {
    // A tag and a length of one byte each lead to the message inside.
    for (std::size_t size = 2 * depth + (depth == 0); size < message.size(); ++size) {
      cuts.push_back(message.substr(0, size));
      for (std::size_t at = 1; at < 2 * depth; at += 2) {
        const std::size_t left = size - at - 1;
        cuts.back()[at] = static_cast<char>(std::min(static_cast<std::size_t>(message[at]), left));
      }
    }
  }
  return cuts;
}

// The file is at fault, whatever reads its messages.
TEST(TensorflowFiles, CutMessagesAreFormatErrors) {
  std::size_t taken = 0, refused = 0;
  const auto read = [&](const auto& reader, const std::string& bytes) {
    try {
      reader(std::make_unique<MemorySource>("F", bytes));
      ++taken;  // cut between two fields, it can be a message without the later ones
    } catch (const FormatError& error) {
      EXPECT_EQ(error.path(), "F");
      ++refused;
    }
  };
  const auto v1 = [](auto file) { formats::read_tf_v1(std::move(file)); };
  for (const auto& [key, whole] : v1_table()) {
    for (const std::string& cut : cuts_of(whole)) {
      std::map<std::string, std::string> table = v1_table();
      table[key] = cut;
      read(v1, formats::build_table(table));
    }
  }
  EXPECT_EQ(taken, 2U);  // a tensor without its type, or of type 0, has no elements
  EXPECT_EQ(refused, 280U);
  taken = refused = 0;
  const auto graph = [](auto file) { formats::read_tf_graph(std::move(file)); };
  const std::string tensor = number(1, 1) + field(2, shape_of({2})) + field(4, floats({1, 2}));
  const std::string node = field(5, field(2, field(8, tensor))) + field(1, "a") + field(2, "Const");
  for (const std::string& cut : cuts_of(field(1, node))) read(graph, cut);
  EXPECT_EQ(taken, 27U);
  EXPECT_EQ(refused, 74U);
}

// w [3, 2] with these slices in the list, and these entries.
std::string v1_bytes(const std::vector<std::string>& slices,
                     const std::vector<std::pair<formats::TensorSlice, std::string>>& entries,
                     const std::string& name = "w", int dtype = 1) {
  std::string meta =
      field(1, name) + field(2, shape_of({3, 2})) + number(3, static_cast<char>(dtype));
  for (const std::string& slice : slices) meta += field(4, slice);
  std::map<std::string, std::string> table{{"", field(1, field(1, meta))}};
  for (const auto& [slice, value] : entries) table[formats::slice_key("w", slice)] = value;
  return formats::build_table(table);
}

TEST(TensorflowFiles, SlicesOfVersionOne) {
  const std::string whole = field(1, "") + field(1, "");
  const formats::TensorSlice all = {{0, -1}, {0, -1}};
  const TempFolder folder;
  write_file_atomically(folder / "m",
                        v1_bytes({whole}, {{all, v1_entry(whole, {1, 2, 3, 4, 5, 6})}}));
  const ModelFile file(folder / "m");
  EXPECT_EQ(values_of(file, "w"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(file.info("w").sliced);
  // The bytes themselves in place of a list.
  const auto content = [&](std::size_t floats_there) {
    return field(2, field(1, "w") + field(2, whole) +
                        field(3, field(4, floats(std::vector<float>(floats_there, 2)))));
  };
  EXPECT_EQ(problem_of_bytes(v1_bytes({whole}, {{all, content(6)}})), "");
  const std::pair<std::string, const char*> cases[] = {
      {v1_bytes({whole}, {{all, content(5)}}), "has 20 bytes, expected 6 elements of 4"},
      {v1_bytes({whole}, {{all, content(7)}}), "has 28 bytes, expected 6 elements of 4"},
      {v1_bytes({whole}, {{all, content(6) + content(6)}}), "is there twice, expected once"},
      {v1_bytes({whole, whole}, {{all, content(6)}}), "overlap, leave gaps or lie outside"},
      {v1_bytes({}, {}), "overlap, leave gaps or lie outside"},
      {v1_bytes({field(1, "")}, {}), "overlap, leave gaps or lie outside"},
      {v1_bytes({slice_message(0, 2)}, {}), "overlap, leave gaps or lie outside"},
      {v1_bytes({whole}, {}), "has 0 bytes, expected 6 elements of 4"},
      {v1_bytes({whole}, {{rows(0, 2), content(6)}}), "has another key"},
      {v1_bytes({whole}, {{all, content(6)}}, ""), "has a control character or no name"},
      {v1_bytes({whole}, {{all, content(6)}}, "v"), "is of no listed tensor"},
  };
  for (const auto& [bytes, what] : cases) {
    EXPECT_NE(problem_of_bytes(bytes).find(what), std::string::npos)
        << what << ", not " << problem_of_bytes(bytes);
  }
  const std::string meta = field(1, "w") + field(2, shape_of({3})) + number(3, 1);
  for (const auto& [list, what] :
       {std::pair{field(1, meta) + field(1, meta), "is there twice, expected once"},
        {field(1, field(1, "w") + field(2, number(3, 1)) + number(3, 1)),
         "has impossible shape"}}) {
    EXPECT_NE(problem_of_bytes(formats::build_table({{"", field(1, list)}})).find(what),
              std::string::npos);
  }
}

// As TensorFlow writes them: other attributes stand beside the value. Of a field that is there
// twice the last counts.
TEST(TensorflowFiles, ConstantsWithMoreAttributes) {
  const std::string tensor = number(1, 1) + field(2, "") + field(5, floats({7}));
  const auto attribute = [](const std::string& key, const std::string& value) {
    return field(5, field(1, key) + field(2, value));
  };
  const TempFolder folder;
  write_file_atomically(
      folder / "g", field(1, field(1, "x") + field(2, "Const") + field(1, "c") +
                                 attribute("dtype", number(6, 1)) +
                                 attribute("value", field(8, tensor)) + attribute("_class", "")));
  const ModelFile file(folder / "g");
  ASSERT_EQ(file.tensors().size(), 1U);
  EXPECT_EQ(values_of(file, "c"), (std::vector<float>{7}));
}

// An element of two numbers is repeated as a whole.
TEST(TensorflowFiles, ConstantsOfComplexNumbers) {
  const auto graph = [](const std::vector<float>& given) {
    return constant_of(8, {2}, field(9, floats(given)));
  };
  EXPECT_EQ(constant_bytes(graph({1, 2})), floats({1, 2, 1, 2}));
  EXPECT_NE(problem_of_bytes(graph({1, 2, 3})).find("'c' has 12 bytes, expected 16"),
            std::string::npos);
}

TEST(TensorflowFiles, NamesLikeThoseOfDataFiles) {
  const TempFolder folder;
  const std::vector<NamedTensor> tensors = {{"w", Array(DType::kFloat32, {3})}};
  write_tensor_bundle(folder / "m", tensors);
  write_tensor_bundle(folder / "m.data-1", tensors);
  EXPECT_EQ(ModelFile(folder / "m.data-1.data-00000-of-00001").kind(), FileKind::kTfCheckpoint);
  write_file_atomically(folder / "m.data-0", "words");
  EXPECT_EQ(identify_file(folder / "m.data-0").what, "a text file");
}

TEST(TensorflowFiles, TwoTensorsOfVersionOne) {
  std::map<std::string, std::string> table = v1_table();
  const std::string v =
      field(1, "v") + field(2, shape_of({2})) + number(3, 1) + field(4, field(1, ""));
  const std::string w = field(1, "w") + field(2, shape_of({3, 2})) + number(3, 1) +
                        field(4, slice_message(0, 2)) + field(4, slice_message(2, 1));
  table[""] = field(1, field(1, w) + field(1, v));
  table[formats::slice_key("v", {{0, -1}})] =
      field(2, field(1, "v") + field(2, field(1, "")) + field(3, field(5, floats({8, 9}))));
  const TempFolder folder;
  write_file_atomically(folder / "m", formats::build_table(table));
  const ModelFile file(folder / "m");
  EXPECT_EQ(values_of(file, "v"), (std::vector<float>{8, 9}));
  EXPECT_EQ(values_of(file, "w"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(file.info("w").sliced);
  EXPECT_FALSE(file.info("v").sliced);
}

}  // namespace
}  // namespace openrnn
