// Files of TensorFlow as named tensors: folders and prefixes of bundles, version 1, graphs.
#include "formats/tensorflow/tensorflow.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "formats/bundle/bundle_proto.h"
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

}  // namespace
}  // namespace openrnn
