// safetensors files: what is read, what is refused and how it is said, what is written.

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "../../../fuzz/entries/model_file.h"
#include "formats/temp_folder.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

std::string corpus_file(const std::string& name) {
  return read_file(source_file("fuzz/corpus/safetensors/" + name));
}

std::string by_hand(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

template <class T>
std::vector<T> elements(const Array& array) {
  const auto values = array.as<T>();
  return {values.begin(), values.end()};
}

class Safetensors : public testing::Test {
 protected:
  void expect(const std::string& bytes, const std::string& part) {
    write_raw(folder / "m", bytes);
    EXPECT_MESSAGE(FormatError, ModelFile(folder / "m"), part);
  }
  const TempFolder folder;
};

TEST_F(Safetensors, ReadIntoMemoryOfTheSameSize) {
  const ModelFile file(source_file("fuzz/corpus/safetensors/good_package"));
  const Array whole = file.read("rnn.weight_ih_l0");
  std::vector<std::byte> bytes(whole.size_bytes());
  file.read_into("rnn.weight_ih_l0", bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), whole.data(), bytes.size()), 0);
  bytes.pop_back();
  EXPECT_MESSAGE(ArgumentError, file.read_into("rnn.weight_ih_l0", bytes),
                 "has 48 bytes, expected memory of as many, not of 47");
  EXPECT_MESSAGE(ArgumentError, file.read_into("none", bytes), "[read_into] 'none' is not in");
}

TEST_F(Safetensors, AnEmptyTensorMayHaveAnyOtherSizes) {
  write_raw(folder / "m",
            by_hand(R"({"t": {"dtype": "F32", "shape": [1099511627776, 1099511627776, 0],)"
                    R"( "data_offsets": [0, 0]}})"));
  const ModelFile file(folder / "m");
  EXPECT_EQ(file.info("t").shape, (Shape{std::int64_t{1} << 40, std::int64_t{1} << 40, 0}));
  EXPECT_EQ(file.read("t").size_bytes(), 0u);
}

TEST_F(Safetensors, PackagesFile) {
  const std::string path = source_file("fuzz/corpus/safetensors/good_package");
  const ModelFile file(path);
  EXPECT_EQ(file.kind(), FileKind::kSafetensors);
  EXPECT_EQ(identify_file(path).what, "a safetensors file");
  EXPECT_EQ(file.tensors().size(), 10u);
  EXPECT_EQ(file.info("rnn.weight_ih_l0").shape, (Shape{4, 3}));
  EXPECT_EQ(file.info("rnn.weight_ih_l0").dtype, "float32");
  EXPECT_EQ(file.info("short").dtype, "int16");
  EXPECT_EQ(file.info("brain").dtype, "bfloat16");
  EXPECT_EQ(file.info("step").shape, Shape{});
  EXPECT_EQ(elements<std::int64_t>(file.read("step")), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(elements<std::uint8_t>(file.read("bytes")), (std::vector<std::uint8_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(elements<std::int32_t>(file.read("ids")), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(elements<bool>(file.read("mask")), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(file.read("half").dtype(), DType::kFloat16);
  EXPECT_EQ(file.read("brain").dtype(), DType::kBfloat16);
  EXPECT_EQ(file.read("rnn.bias_ih_l0").dtype(), DType::kFloat64);
  EXPECT_EQ(file.read("empty").shape(), (Shape{0, 3}));
  EXPECT_EQ(file.read_bytes("short"), std::string("\0\0\1\0\2\0", 6));
  EXPECT_MESSAGE(UnsupportedError, file.read("short"), "'short' has element type int16");
  EXPECT_MESSAGE(ArgumentError, file.read("shorts"), "[read] 'shorts' is not in ");
  ASSERT_EQ(file.values().size(), 1u);
  EXPECT_EQ(file.values()[0].name, "format");
  EXPECT_EQ(std::get<std::string>(file.values()[0].value), "np");
}

TEST_F(Safetensors, ViewsShareTheMapping) {
  const ModelFile file(source_file("fuzz/corpus/safetensors/good_package"));
  for (const char* name : {"rnn.weight_ih_l0", "rnn.bias_ih_l0", "mask", "empty", "step"}) {
    const std::optional<ConstArrayView> view = file.view(name);
    ASSERT_TRUE(view) << name;
    const Array copy = file.read(name);
    EXPECT_EQ(view->dtype, copy.dtype());
    EXPECT_EQ(view->shape, copy.shape());
    EXPECT_EQ(0, std::memcmp(view->data, copy.data(), copy.size_bytes())) << name;
    EXPECT_EQ(view->data, file.view(name)->data) << name;
  }
}

TEST_F(Safetensors, AViewThatWouldNotBeAligned) {
  const ModelFile file(source_file("fuzz/corpus/safetensors/good_unaligned"));
  EXPECT_EQ(file.tensors()[0].name, "a");  // the order of the bytes
  EXPECT_EQ(file.info("new").dtype, "Q7");
  EXPECT_EQ(file.read_bytes("new"), "\x0c");
  EXPECT_FALSE(file.view("b"));
  EXPECT_EQ(file.read("b").size(), 1);
  EXPECT_MESSAGE(UnsupportedError, file.view("z"), "float8_e4m3fn");
}

TEST_F(Safetensors, Errors) {
  expect(by_hand(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd"),
         "m @ 8] tensor 'a' has 4 bytes, expected 2 elements of 32 bits");
  expect(by_hand(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "ab"),
         "tensor 'a' has bytes 1 to 2, expected it to begin at 0");
  expect(by_hand(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "ab"),
         "the tensors have 1 bytes, expected 2");
  expect(by_hand(R"({"a":{"dtype":"U8","shape":[1.5]}})"), "has 1.5, expected sizes from 0");
  expect(by_hand(R"({"a":{"dtype":"U8","data_offsets":[1,2,3]}})"), "expected two data_offsets");
  expect(by_hand(R"({"a":{"dtype":"U8","shape":[],"shape":[]}})"), "has shape twice");
  expect(by_hand(R"({"a":{"dtype":"U8"}})"), "expected dtype, shape and data_offsets");
  expect(by_hand(R"({"a" 1})"), "m @ 13] this is no JSON, expected the header");
  expect(by_hand(R"({"__metadata__":{"a":"1","a":"2"}})"), "'a' is there twice");
  expect("\x93NUMPY", "this is a NumPy array, expected a model");
  expect("abcdefgh", "this is a text file");
  expect("{\"a\":1}", "this is a JSON file");
  EXPECT_MESSAGE(IoError, ModelFile(folder / "absent"), "absent");
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  for (const char* name : {"good_package", "good_unaligned", "good_no_tensors"}) {
    const std::string whole = corpus_file(name);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      EXPECT_FALSE(read_model_file(cut)) << name << " of " << size;
    }
  }
}

TEST_F(Safetensors, AnyChangedByteDoesNoHarm) {
  int refused = 0;
  for (const char* name : {"good_package", "good_unaligned", "good_index"}) {
    const std::string whole = corpus_file(name);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ change);
        refused += !read_model_file(changed);
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(Safetensors, Shards) {
  const Array a = array_of<float>({3}, {1, 2, 3}), b = array_of<double>({2}, {4, 5}),
              c = array_of<float>({1}, {6});
  const std::vector<NamedView> named{{"a", a.view()}, {"b", b.view()}, {"c", c.view()}};
  const std::string path = folder / "m.safetensors";
  const SafetensorsOptions options{.metadata = {{"k", "v"}}, .max_shard_bytes = 20};
  write_safetensors(path, named, options);
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"m-00001-of-00002.safetensors",
                                      "m-00002-of-00002.safetensors", "m.safetensors.index.json"}));
  const ModelFile file(path + ".index.json");
  EXPECT_EQ(file.kind(), FileKind::kSafetensorsIndex);
  EXPECT_EQ(elements<float>(file.read("a")), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(elements<double>(file.read("b")), (std::vector<double>{4, 5}));
  EXPECT_EQ(elements<float>(file.read("c")), (std::vector<float>{6}));
  ASSERT_EQ(file.values().size(), 2u);  // the shards' equal metadata once
  EXPECT_EQ(std::get<std::string>(file.values()[0].value), "32");
  EXPECT_EQ(file.values()[1].name, "k");
  EXPECT_MESSAGE(ArgumentError, write_safetensors(path, named, options), "is there already");
  EXPECT_MESSAGE(ArgumentError, write_safetensors(folder / "m", named, options),
                 "expected one that ends in .safetensors");
  std::filesystem::remove(folder / "m-00002-of-00002.safetensors");
  EXPECT_MESSAGE(IoError, ModelFile(path + ".index.json"), "m-00002-of-00002.safetensors");
}

TEST_F(Safetensors, AnIndexAndItsFilesAgree) {
  const Array a = array_of<float>({1}, {1});
  write_safetensors(folder / "s", std::vector<NamedView>{{"a", a.view()}, {"b", a.view()}});
  write_raw(folder / "i", R"({"weight_map": {"a": "s"}})");
  EXPECT_MESSAGE(FormatError, ModelFile(folder / "i"),
                 "tensor 'b' is not in this file by the index");
  write_raw(folder / "i", R"({"weight_map": {"a": "s", "b": "s", "c": "s"}})");
  EXPECT_MESSAGE(FormatError, ModelFile(folder / "i"), "tensor 'c' is not in 's'");
  write_raw(folder / "i", R"({"weight_map": {"a": "/etc/passwd"}})");
  EXPECT_MESSAGE(FormatError, ModelFile(folder / "i"), "expected the name of one in the folder");
}

// A file that has what the index says is in another one.
TEST_F(Safetensors, ATensorInTwoFiles) {
  const Array a = array_of<float>({1}, {1}), b = array_of<float>({1}, {2});
  write_safetensors(folder / "s", std::vector<NamedView>{{"a", a.view()}});
  write_safetensors(folder / "t", std::vector<NamedView>{{"a", b.view()}, {"b", b.view()}});
  write_raw(folder / "i", R"({"weight_map": {"a": "s", "b": "t"}})");
  EXPECT_MESSAGE(FormatError, ModelFile(folder / "i"),
                 "t @ 8] tensor 'a' is not in this file by the index");
}

// Metadata are those of the index and of each file, but for what several say alike.
TEST_F(Safetensors, MetadataOfSeveralFiles) {
  const Array a = array_of<float>({1}, {1});
  write_safetensors(folder / "s", std::vector<NamedView>{{"a", a.view()}},
                    {.metadata = {{"k", "v"}, {"m", "1"}}});
  write_safetensors(folder / "t", std::vector<NamedView>{{"b", a.view()}},
                    {.metadata = {{"k", "v"}, {"m", "2"}}});
  write_raw(folder / "i",
            R"({"metadata": {"k": "v", "n": "0"}, "weight_map": {"a": "s", "b": "t"}})");
  const ModelFile file(folder / "i");
  std::string values;
  for (const NamedValue& value : file.values()) {
    values += value.name + "=" + std::get<std::string>(value.value) + " ";
  }
  EXPECT_EQ(values, "k=v n=0 m=1 m=2 ");
}

// A bool is 0 or 1, however it is read.
TEST_F(Safetensors, OtherBytesAreNoBools) {
  const auto bools = [&](const std::string& shape, const std::string& bytes) {
    write_raw(folder / "m",
              by_hand(R"({"a":{"dtype":"BOOL","shape":)" + shape + R"(,"data_offsets":[0,)" +
                          std::to_string(bytes.size()) + "]}}",
                      bytes));
    return ModelFile(folder / "m");
  };
  const ModelFile good = bools("[2,2]", std::string("\1\0\0\1", 4));
  EXPECT_EQ(good.view("a")->as<bool>()[3], true);
  const ModelFile file = bools("[2,2]", std::string("\1\0\2\1", 4));
  const std::string said = "element 2 of tensor 'a' is 2, expected 0 or 1";
  EXPECT_MESSAGE(FormatError, file.read("a"), said);
  EXPECT_MESSAGE(FormatError, file.view("a"), said);
  EXPECT_MESSAGE(FormatError, file.read_rows("a", [](std::int64_t, const ConstArrayView&) {}),
                 said);
  std::vector<std::byte> memory(4);
  EXPECT_MESSAGE(FormatError, file.read_into("a", memory), said);
  EXPECT_EQ(file.read_bytes("a"), std::string("\1\0\2\1", 4));
  // Counted from the tensor's first element, in whatever part of it the byte lies.
  std::string long_one(4'000'000, '\1');
  long_one[3'000'007] = '\5';
  const ModelFile in_parts = bools("[4,1000000]", long_one);
  EXPECT_MESSAGE(FormatError, in_parts.read_rows("a", [](std::int64_t, const ConstArrayView&) {}),
                 "element 3000007 of tensor 'a' is 5, expected 0 or 1");
}

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const std::string path = folder / "m";
  const Array scalar = array_of<std::int64_t>({}, {-5}), empty = Array(DType::kFloat16, {3, 0}),
              matrix = array_of<float>({3, 5}, std::vector<float>(15, 0.5f)),
              odd = array_of<std::uint8_t>({1}, {9});
  Array mask(DType::kBool, {3});
  mask.as<bool>()[1] = true;
  const std::vector<NamedView> named{{"s\xc3\xa4", scalar.view()},
                                     {"e", empty.view()},
                                     {"m", matrix.view()},
                                     {"b", mask.view()},
                                     {"o", odd.view()}};
  write_safetensors(path, named, {.metadata = {{"text", "two\nlines"}}});
  const ModelFile file(path);
  ASSERT_EQ(file.tensors().size(), named.size());
  for (const NamedView& one : named) {
    const Array back = file.read(one.name);
    EXPECT_EQ(back.dtype(), one.values.dtype);
    EXPECT_EQ(back.shape(), one.values.shape);
    EXPECT_EQ(0, std::memcmp(back.data(), one.values.data, back.size_bytes())) << one.name;
    EXPECT_TRUE(file.view(one.name)) << one.name;
  }
  EXPECT_EQ(std::get<std::string>(file.values().at(0).value), "two\nlines");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m"});
}

TEST_F(Safetensors, NamesThatCannotBeWritten) {
  const Array a = array_of<float>({1}, {1});
  const auto write = [&](const std::string& name) {
    write_safetensors(folder / "m", std::vector<NamedView>{{"a", a.view()}, {name, a.view()}});
  };
  EXPECT_MESSAGE(ArgumentError, write(""), "is empty");
  EXPECT_MESSAGE(ArgumentError, write("a"), "'a' is given twice");
  EXPECT_MESSAGE(ArgumentError, write("\xff"), "is not printable UTF-8");
  EXPECT_MESSAGE(ArgumentError, write("__metadata__"), "expected another name");
  const std::pair<std::string, std::string> metadata[] = {
      {"a\n", "b"}, {"\xff", "b"}, {"a", "\xff"}};
  for (const auto& [key, value] : metadata) {
    EXPECT_MESSAGE(ArgumentError,
                   write_safetensors(folder / "m", std::vector<NamedView>{{"a", a.view()}},
                                     {.metadata = {{key, value}}}),
                   "expected a printable key and UTF-8");
  }
  EXPECT_TRUE(folder.names().empty());
}

// Every place in a header where another value, or too few of them, can stand.
TEST_F(Safetensors, HeadersByHand) {
  const auto tensor = [](const std::string& fields) { return by_hand("{\"a\":{" + fields + "}}"); };
  const std::string dtype = R"("dtype":"F32")", shape = R"("shape":[0])",
                    offsets = R"("data_offsets":[0,0])";
  const std::string all = dtype + "," + shape + "," + offsets;
  write_raw(folder / "m", tensor(all));
  EXPECT_EQ(ModelFile(folder / "m").info("a").shape, Shape{0});
  for (const std::string& two :
       {dtype + "," + shape, dtype + "," + offsets, shape + "," + offsets, std::string()}) {
    expect(tensor(two), "has not all of them, expected dtype, shape and data_offsets");
  }
  for (const std::string& field : {dtype, shape, offsets}) {
    expect(tensor(all + "," + field), " twice, expected it once");
  }
  const std::pair<std::string, const char*> cases[] = {
      {dtype + "," + shape + R"(,"data_offsets":[])", "has 0 of them, expected two data_offsets"},
      {dtype + "," + shape + R"(,"data_offsets":[0])", "has 1 of them, expected two data_offsets"},
      {dtype + "," + shape + R"(,"data_offsets":[0,0,0])", "has 0, expected two data_offsets"},
      {dtype + R"(,"shape":[9223372036854775808])", "expected sizes from 0 to 2^63 - 1"},
      {dtype + R"(,"shape":[-1])", "has -1, expected sizes from 0"},
      {dtype + R"(,"shape":[[]])", "has an array, expected sizes"},
      {dtype + R"(,"shape":{})", "has an object, expected dtype"},
      {dtype + R"(,"shape":3)", "has 3, expected dtype"},
      {R"("dtype":["F32"])", "has an array, expected dtype"},
      {R"("dtype":"\u0001")", "has a control character"},
      {R"("shape":"F32")", "has 'F32', expected dtype"},
      {R"("more":1)", "has 'more', expected dtype"},
      {dtype + R"(,"shape":null)", "has null, expected dtype"},
      {dtype + R"(,"shape":[true])", "has true, expected sizes"},
  };
  for (const auto& [fields, what] : cases) expect(tensor(fields), what);
  expect(by_hand(R"({"a":1})"), "the header has 1, expected an object for each tensor");
  expect(by_hand(R"({"a":[]})"), "the header has an array, expected an object for each tensor");
  expect(by_hand("{\"\\u0001\":{}}"), "holds a control character");
  expect(by_hand(R"({"__metadata__":{"a":1}})"), "the metadata has 1, expected strings");
  expect(by_hand(R"({"__metadata__":{"a":{}}})"), "the metadata has an object, expected strings");
  // A name and a key of metadata may be the same.
  const std::string same = by_hand(R"({"__metadata__":{"a":"1"},"a":{)" + all + "}}");
  write_raw(folder / "m", same);
  EXPECT_EQ(ModelFile(folder / "m").values().size(), 1U);
}

TEST_F(Safetensors, BitsOfEveryType) {
  const std::tuple<const char*, const char*, std::size_t> types[] = {
      {"BOOL", "bool", 8},
      {"U8", "uint8", 8},
      {"I8", "int8", 8},
      {"F8_E5M2", "float8_e5m2", 8},
      {"F8_E4M3", "float8_e4m3fn", 8},
      {"F8_E8M0", "float8_e8m0fnu", 8},
      {"F8_E4M3FNUZ", "float8_e4m3fnuz", 8},
      {"F8_E5M2FNUZ", "float8_e5m2fnuz", 8},
      {"I16", "int16", 16},
      {"U16", "uint16", 16},
      {"F16", "float16", 16},
      {"BF16", "bfloat16", 16},
      {"I32", "int32", 32},
      {"U32", "uint32", 32},
      {"F32", "float32", 32},
      {"C64", "complex64", 64},
      {"F64", "float64", 64},
      {"I64", "int64", 64},
      {"U64", "uint64", 64},
      {"F4", "float4_e2m1fn", 4},
      {"F6_E2M3", "float6_e2m3fn", 6},
      {"F6_E3M2", "float6_e3m2fn", 6},
  };
  const auto of = [](const std::string& code, std::size_t count, std::size_t bytes) {
    return by_hand(R"({"a":{"dtype":")" + code + R"(","shape":[)" + std::to_string(count) +
                       R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}",
                   std::string(bytes, '\0'));
  };
  for (const auto& [code, name, bits] : types) {
    write_raw(folder / "m", of(code, 4, bits / 2));
    EXPECT_EQ(ModelFile(folder / "m").info("a").dtype, name);
    expect(of(code, 4, bits / 2 - 1), "expected 4 elements of " + std::to_string(bits) + " bits");
    expect(of(code, 4, bits / 2 + 1), "expected 4 elements of " + std::to_string(bits) + " bits");
  }
  // Half a byte is nobody's, however it is rounded.
  for (const std::size_t bytes : {1U, 2U}) expect(of("F4", 3, bytes), "a whole number of bytes");
  for (const std::size_t bytes : {2U, 3U}) expect(of("F6_E2M3", 3, bytes), "a whole number");
  // Of a type that is not known it may be any number.
  write_raw(folder / "m", of("Q9", 3, 7));
  EXPECT_EQ(ModelFile(folder / "m").info("a").bytes, 7U);
}

// Bytes in an order that is not the header's, empty tensors between them and at both ends.
TEST_F(Safetensors, Tiling) {
  const auto entry = [](const std::string& name, int begin, int end) {
    return "\"" + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  write_raw(folder / "m",
            by_hand("{" + entry("d", 2, 2) + "," + entry("c", 1, 2) + "," + entry("b", 1, 1) + "," +
                        entry("a", 0, 1) + "," + entry("e", 0, 0) + "}",
                    "xy"));
  const ModelFile file(folder / "m");
  std::string names;
  for (const TensorInfo& info : file.tensors()) names += info.name;
  EXPECT_EQ(names, "eabcd");
  EXPECT_EQ(file.read_bytes("c"), "y");
  expect(by_hand("{" + entry("a", 0, 2) + "," + entry("b", 1, 3) + "}", "xyz"),
         "tensor 'b' has bytes 1 to 3, expected it to begin at 2");
  expect(by_hand("{" + entry("a", 0, 1) + "," + entry("b", 2, 3) + "}", "xyz"),
         "tensor 'b' has bytes 2 to 3, expected it to begin at 1");
  expect(by_hand("{" + entry("a", 0, 3) + "," + entry("b", 1, 1) + "}", "xyz"),
         "tensor 'b' has bytes 1 to 1, expected it to begin at 3");
  expect(by_hand("{" + entry("a", 0, 3) + "}", "xy"), "the tensors have 3 bytes, expected 2");
  expect(by_hand("{" + entry("a", 0, 1) + "}", "xy"), "the tensors have 1 bytes, expected 2");
}

TEST_F(Safetensors, IndexesByHand) {
  const Array a = array_of<float>({1}, {1});
  write_safetensors(folder / "s", std::vector<NamedView>{{"a", a.view()}});
  const auto index = [&](const std::string& text) {
    write_raw(folder / "i", text);
    return ModelFile(folder / "i");
  };
  const std::string map = R"("weight_map": {"a": "s"})";
  // What nobody reads may be anything, weight_maps further inside too.
  const ModelFile file = index(
      R"({"more": [1, {"weight_map": {"b": "t"}}, "x"], "text": "x", "metadata":
          {"size": 12, "least": -5, "real": 1.5, "text": "t", "flag": true, "in": {"x": "y"}}, )" +
      map + R"(, "last": null, "weight": 1})");
  EXPECT_EQ(file.tensors().size(), 1U);
  std::string values;
  for (const NamedValue& value : file.values()) {
    values += value.name + "=" + std::get<std::string>(value.value) + " ";
  }
  EXPECT_EQ(values, "size=12 least=-5 text=t ");
  const std::pair<std::string, const char*> cases[] = {
      {"{" + map + "," + map + "}", "the index has two weight_maps"},
      {R"({"weight_map": {"a": "s", "a": "s"}})", "tensor 'a' is there twice"},
      {R"({"x": {"weight_map": {"a": "s"}}})", "the index has no weight_map"},
      {R"({"weight_map": 1, "x": 1})", "the index has 1, expected an object with a weight_map"},
      {R"({"weight_map": "s"})", "the index has s, expected"},
      {R"({"weight_map": ["s"]})", "the index has an array, expected"},
      {R"({"weight_map": {"a": 1}})", "the index has 1, expected"},
      {R"({"weight_map": {"a": null}})", "the index has null, expected"},
      {R"({"weight_map": {"a": true}})", "the index has true, expected"},
      {R"({"weight_map": {"a": 1.5}})", "the index has 1.5, expected"},
      {R"({"weight_map": {"a": {}}})", "the index has an object, expected"},
      {R"({"weight_map": {"a": []}})", "the index has an array, expected"},
      {R"({"weight_map": {"\u0001": "s"}})", "holds a control character"},
  };
  for (const auto& wrong : cases) EXPECT_MESSAGE(FormatError, index(wrong.first), wrong.second);
  for (const char* name : {"", ".", "..", "/s", "./s", "a\\\\s", "\\u0001"}) {
    EXPECT_MESSAGE(FormatError, index(R"({"weight_map": {"a": ")" + std::string(name) + R"("}})"),
                   "expected the name of one in the folder of the index");
  }
  EXPECT_EQ(index(R"({"weight_map": {}})").tensors().size(), 0U);
}

// Shards are filled to the last byte, and a larger tensor has one of its own.
TEST_F(Safetensors, ShardsFilledToTheLastByte) {
  const Array one = array_of<float>({1}, {1}), three = array_of<float>({3}, {1, 2, 3});
  const auto shards = [&](const std::vector<const Array*>& arrays, std::uint64_t most) {
    const TempFolder here;
    std::vector<NamedView> views;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      views.push_back({std::string(1, static_cast<char>('a' + i)), arrays[i]->view()});
    }
    write_safetensors(here / "m.safetensors", views, {.max_shard_bytes = most});
    return here.names().size() - 1;
  };
  EXPECT_EQ(shards({&one, &one}, 8), 1U);
  EXPECT_EQ(shards({&one, &one}, 7), 2U);
  EXPECT_EQ(shards({&one, &three, &one}, 8), 3U);
  EXPECT_EQ(shards({&three, &one}, 8), 2U);
  EXPECT_EQ(shards({&one, &one, &one}, 8), 2U);
  EXPECT_EQ(shards({&one}, 1), 1U);
  EXPECT_EQ(shards({}, 1), 1U);
}

}  // namespace
}  // namespace openrnn::formats
