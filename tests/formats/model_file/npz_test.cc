// Archives of NumPy: what is written is read, what is mapped, what is refused.
#include "formats/npy/npz.h"

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include <cstring>

#include "base/utf8.h"
#include "formats/file/atomic_file.h"
#include "formats/file/owned_source.h"
#include "formats/npy/header.h"
#include "formats/npy/npz_values.h"
#include "formats/temp_folder.h"
#include "formats/zip/zip_reader.h"
#include "formats/zip/zip_writer.h"
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

// With '.npy' behind it a name has to fit into the 16 bits of its length in an archive.
TEST(Npz, TheLongestName) {
  const TempFolder folder;
  const Array weights = array_of<float>({1}, {1.5F});
  const std::string longest(65531, 'n');
  write_npz(folder / "m", std::vector<NamedView>{{longest, weights.view()}});
  EXPECT_EQ(ModelFile(folder / "m").read(longest).as<float>()[0], 1.5F);
  const std::string said = "nn... (65532 bytes)' is too long, expected at most 65531 bytes";
  const std::vector<NamedView> one{{longest + "n", weights.view()}};
  EXPECT_MESSAGE(ArgumentError, write_npz(folder / "n", one), said);
  const std::vector<NamedValue> value{{longest + "n", true}};
  EXPECT_MESSAGE(ArgumentError, write_npz(folder / "n", {}, value), said);
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

// An archive of these entries, stored.
std::string zipped(const std::vector<std::pair<std::string, std::string>>& entries) {
  const TempFolder folder;
  replace_file(folder / "z", [&](OutputFile& file) {
    ZipWriter writer(&file, 1);
    for (const auto& [name, bytes] : entries) writer.add(name, {bytes});
    writer.finish();
  });
  return read_file(folder / "z");
}
FileContents contents_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  return read_npz(std::make_unique<OwnedSource>("m", zipped(entries)));
}
std::string npy_of(const std::string& descr, const Shape& shape, const std::string& bytes) {
  return npy_prefix(descr, shape) + bytes;
}
std::string characters(const std::vector<std::uint32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}

// Where no entry has a checksum, none is compared.
TEST(Npz, WithoutChecksums) {
  std::string bytes = zipped({{"a.npy", npy_of("<f4", {1}, std::string(4, '\0'))}});
  const std::size_t directory = bytes.find("PK\1\2");
  bytes.replace(14, 4, 4, '\0');
  bytes.replace(directory + 16, 4, 4, '\0');
  const TempFolder folder;
  write_raw(folder / "m", bytes);
  const ModelFile file(folder / "m");
  EXPECT_FALSE(file.has_checksums());
  EXPECT_EQ(file.read("a").as<float>()[0], 0.0F);
  file.verify();
}

TEST(Npz, EveryCharacter) {
  for (const std::uint32_t good :
       {0x61U, 0x7fU, 0x80U, 0xd7ffU, 0xe000U, 0xffffU, 0x10000U, 0x10ffffU}) {
    const FileContents found = contents_of({{"t.npy", npy_of("<U1", {}, characters({good}))}});
    EXPECT_EQ(found.values.at(0).value, PlainValue(utf8_of(static_cast<std::int32_t>(good))))
        << good;
  }
  for (const std::uint32_t bad : {0xd800U, 0xdfffU, 0x110000U, 0xffffffffU}) {
    EXPECT_MESSAGE(FormatError,
                   contents_of({{"t.npy", npy_of("<U2", {}, characters({0x61, bad}))}}),
                   "a character is " + std::to_string(bad) + ", expected one of Unicode");
  }
  // What fills a text up is none of it; zeros inside are.
  const std::string padded = characters({0x61, 0, 0x62, 0, 0, 0, 0, 0});
  EXPECT_EQ(contents_of({{"t.npy", npy_of("<U4", {2}, padded)}}).values.at(0).value,
            PlainValue(std::vector<std::string>{std::string("a\0b", 3), ""}));
  EXPECT_EQ(
      contents_of({{"t.npy", npy_of("|S3", {2}, std::string("a\0b\0\0\0", 6))}}).values.at(0).value,
      PlainValue(std::vector<std::string>{std::string("a\0b", 3), ""}));
}

// A value has at most one dimension, and a type and a size of one.
TEST(Npz, WhatIsAValue) {
  constexpr std::int64_t kMostValueBytes = 1 << 20;
  const std::string list = npy_of("<U1", {1}, characters({0x61}));
  const auto is_value = [&](const std::string& npy) {
    const FileContents found = contents_of({{"openrnn.values.npy", list}, {"a.npy", npy}});
    EXPECT_EQ(found.tensors.size() + found.values.size(), 1U);
    return found.values.size() == 1;
  };
  EXPECT_TRUE(is_value(npy_of("<i8", {}, std::string(8, 'x'))));
  EXPECT_TRUE(is_value(npy_of("<i8", {2}, std::string(16, 'x'))));
  EXPECT_FALSE(is_value(npy_of("<i8", {1, 1}, std::string(8, 'x'))));
  EXPECT_FALSE(is_value(npy_of("<i4", {}, std::string(4, 'x'))));
  EXPECT_TRUE(is_value(npy_of("|S1", {0}, "")));
  EXPECT_FALSE(is_value(npy_of("|S0", {}, "")));
  EXPECT_TRUE(
      is_value(npy_of("|S1", {kMostValueBytes}, std::string(std::size_t{kMostValueBytes}, 'x'))));
  EXPECT_FALSE(is_value(
      npy_of("|S1", {kMostValueBytes + 1}, std::string(std::size_t{kMostValueBytes + 1}, 'x'))));
  // Texts are values whatever the list says, numbers are not.
  EXPECT_EQ(contents_of({{"t.npy", npy_of("|S1", {}, "x")}}).values.size(), 1U);
  EXPECT_EQ(contents_of({{"t.npy", npy_of("<f8", {}, std::string(8, '\0'))}}).values.size(), 0U);
  const PlainValue flags = contents_of({{"openrnn.values.npy", list},
                                        {"a.npy", npy_of("|b1", {2}, std::string("\1\0", 2))}})
                               .values.at(0)
                               .value;
  EXPECT_EQ(flags, PlainValue(std::vector<std::int64_t>{1, 0}));
}

TEST(Npz, Names) {
  const std::string one = npy_of("|u1", {1}, "x");
  EXPECT_EQ(contents_of({{"a.npy", one}, {"b.npy.npy", one}}).tensors.at(1).name, "b.npy");
  EXPECT_MESSAGE(FormatError, contents_of({{".npy", one}}), "the name '' is empty");
  EXPECT_MESSAGE(FormatError, contents_of({{"\xff.npy", one}}), "not UTF-8");
  const auto is = [](const std::vector<std::pair<std::string, std::string>>& entries) {
    const std::string bytes = zipped(entries);
    const MemorySource source("m", bytes);
    return is_npz(ZipArchive(source));
  };
  EXPECT_TRUE(is({{"a.npy", one}}));
  EXPECT_FALSE(is({{"a.npy", one}, {"b", one}}));
  EXPECT_FALSE(is({}));
}

}  // namespace
}  // namespace openrnn::formats
