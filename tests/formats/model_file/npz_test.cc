// Archives of NumPy: what is written is read, what is mapped, what is refused.
#include "formats/npy/npz.h"

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include <cstring>

#include "formats/temp_folder.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

std::string corpus(const std::string& name) { return source_file("fuzz/corpus/npz/" + name); }

TEST(Npz, EveryTypeThereAndBack) {
  const TempFolder folder;
  std::vector<Array> arrays;
  std::vector<NamedView> views;
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt32,
                            DType::kInt64, DType::kUInt8, DType::kBool}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3, 1}}) {
      Array& array = arrays.emplace_back(dtype, shape);
      for (std::size_t i = 0; i < array.size_bytes(); ++i) {
        static_cast<unsigned char*>(array.data())[i] = static_cast<unsigned char>(i % 2);
      }
    }
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    views.push_back({"a/" + std::to_string(i), arrays[i].view()});
  }
  write_npz(folder / "m", views);
  const ModelFile file(folder / "m");
  EXPECT_EQ(file.kind(), FileKind::kNpz);
  EXPECT_TRUE(file.has_checksums());
  ASSERT_EQ(file.tensors().size(), views.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array found = file.read(views[i].name);
    EXPECT_EQ(found.dtype(), arrays[i].dtype());
    EXPECT_EQ(found.shape(), arrays[i].shape());
    EXPECT_EQ(std::memcmp(found.data(), arrays[i].data(), found.size_bytes()), 0);
    const std::optional<ConstArrayView> mapped = file.view(views[i].name);
    ASSERT_TRUE(mapped) << "what we write is aligned";
    EXPECT_EQ(std::memcmp(mapped->data, arrays[i].data(), found.size_bytes()), 0);
  }
}

TEST(Npz, ValuesThereAndBack) {
  const TempFolder folder;
  const std::vector<NamedValue> values = {{"none", {}},
                                          {"yes", true},
                                          {"epoch", std::int64_t{-3}},
                                          {"rate", 0.1},
                                          {"text", std::string("w\xc3\xb6rter")},
                                          {"empty", std::string()},
                                          {"bytes", std::string("\x80x")},
                                          {"integers", std::vector<std::int64_t>{1, 2}},
                                          {"reals", std::vector<double>{0.5, -2.0, 1e300}},
                                          {"texts", std::vector<std::string>{"a", "", "bcd"}}};
  const Array weights = array_of<float>({2}, {1.0F, 2.0F});
  const std::vector<NamedView> views{{"w", weights.view()}};
  write_npz(folder / "m", views, values);
  const ModelFile file(folder / "m");
  ASSERT_EQ(file.tensors().size(), 1U);
  ASSERT_EQ(file.values().size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(file.values()[i].name, values[i].name);
    EXPECT_EQ(file.values()[i].value, values[i].value) << values[i].name;
  }
  EXPECT_MESSAGE(ArgumentError,
                 write_npz(folder / "n", views, std::vector<NamedValue>{{"w", true}}),
                 "'w' is given twice");
  EXPECT_MESSAGE(
      ArgumentError,
      write_npz(folder / "n", std::vector<NamedView>{{"openrnn.values", weights.view()}}),
      "given twice");
  const Array brain(DType::kBfloat16, {1});
  EXPECT_MESSAGE(UnsupportedError,
                 write_npz(folder / "n", std::vector<NamedView>{{"b", brain.view()}}),
                 "tensor 'b' is bfloat16");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m"});
}

// Made with NumPy itself, stored and deflated.
TEST(Npz, WhatIsListedAndWhatIsRead) {
  for (const char* name : {"good_of_everything", "good_of_everything_compressed"}) {
    const ModelFile file(corpus(name));
    const Array columns = file.read("columns");
    EXPECT_EQ(columns.shape(), (Shape{2, 3}));
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(columns.as<double>()[i], static_cast<double>(i));
    EXPECT_FALSE(file.view("columns"));
    EXPECT_EQ(file.read("scalar").as<std::int64_t>()[0], 7);
    EXPECT_EQ(file.info("small").dtype, "int8");
    EXPECT_EQ(file.read_bytes("small"), std::string("\0\1\2", 3));
    EXPECT_EQ(file.info("fields").dtype, "structures");
    EXPECT_MESSAGE(UnsupportedError, file.read("none"), "'none' has element type object");
    EXPECT_MESSAGE(UnsupportedError, file.read("big"), "element type big-endian float32");
    std::size_t texts = 0;
    for (const NamedValue& value : file.values()) {
      texts += value.name == "text" && std::get<std::string>(value.value) == "words \xc3\xa4";
      texts += value.name == "bytes" && std::get<std::string>(value.value) == "\x80x";
      texts += value.name == "texts" && std::get<std::vector<std::string>>(value.value).size() == 2;
    }
    EXPECT_EQ(texts, 3U);
  }
}

TEST(Npz, WhatIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"bad_bomb", "expected at most 64 times as many"},
      {"bad_bombs", "expected at most 64 times as many"},
      {"bad_method", "'a.npy' is compressed, expected it stored"},
      {"bad_no_array", "no array of NumPy"},
      {"bad_size", "bytes, expected those of float64 [4]"},
      {"bad_shape", "expected those of float64 [9]"},
      {"bad_name", "control character"},
      {"bad_character", "a character is 4294967295"},
      {"bad_values", "no names of values"},
  };
  for (const auto& [name, what] : cases) {
    EXPECT_MESSAGE(Error, ModelFile(corpus(name)), what);
  }
  EXPECT_MESSAGE(FormatError, ModelFile(corpus("bad_checksum")).verify(), "have checksum");
  EXPECT_MESSAGE(FormatError, ModelFile(corpus("bad_checksum")).read("rnn.bias_ih_l0"),
                 "have checksum");
  EXPECT_MESSAGE(FormatError, ModelFile(corpus("bad_checksum_compressed")).read("rnn.bias_ih_l0"),
                 "'rnn.bias_ih_l0.npy' has checksum");
  EXPECT_MESSAGE(FormatError, ModelFile(corpus("bad_shorter")).read("a"), "no deflate stream of");
}

TEST(Npz, CutAnywhereItIsRefused) {
  for (const char* name : {"good_network", "good_of_everything_compressed"}) {
    const std::string whole = read_file(corpus(name));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_THROW(
          read_npz(std::make_unique<MemorySource>("m", std::string_view(whole).substr(0, size))),
          FormatError)
          << size;
    }
  }
}

}  // namespace
}  // namespace openrnn::formats
