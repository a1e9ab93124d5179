// Files of networks as the core reads them: what each part must be, and how a fault is said.
#include <gtest/gtest.h>
#include <openrnn/runtime_file.h>
#include <openrnn/spec_fields.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/crc/crc32c.h"
#include "base/text/json.h"
#include "formats/temp_folder.h"
#include "runtime/model_file/header.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
}

std::span<const std::byte> span_of(const std::string& bytes) {
  return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

// ---- The header --------------------------------------------------------------------------------

std::string header_error(const std::string& bytes) {
  return error_of<FormatError>([&] { runtime::read_header("m", span_of(bytes)); });
}

std::string tensor(const std::string& code, const std::string& shape, const std::string& offsets) {
  return R"({"dtype": ")" + code + R"(", "shape": )" + shape + R"(, "data_offsets": )" + offsets +
         "}";
}

TEST(FileHeader, Types) {
  const std::tuple<const char*, DType, int> types[] = {
      {"F16", DType::kFloat16, 2}, {"BF16", DType::kBfloat16, 2}, {"F32", DType::kFloat32, 4},
      {"F64", DType::kFloat64, 8}, {"I32", DType::kInt32, 4},     {"I64", DType::kInt64, 8},
      {"U8", DType::kUInt8, 1},    {"BOOL", DType::kBool, 1}};
  for (const auto& [code, dtype, bytes] : types) {
    const std::string end = std::to_string(6 * bytes);
    const std::string text = R"({"a": )" + tensor(code, "[2, 3]", "[0, " + end + "]") + "}";
    const std::string whole = file_of(text, std::string(static_cast<std::size_t>(6 * bytes), 'x'));
    const runtime::FileHeader header = runtime::read_header("m", span_of(whole));
    const runtime::FileTensor& found = header.tensors.at("a");
    EXPECT_EQ(found.dtype, dtype);
    EXPECT_EQ(found.shape, (Shape{2, 3}));
    EXPECT_EQ(found.bytes.data(), span_of(whole).data() + 8 + text.size());
    EXPECT_EQ(found.bytes.size(), static_cast<std::size_t>(6 * bytes));
  }
  // The size of an element of another type is not known.
  const std::string other = file_of(R"({"a": )" + tensor("F8_E5M2", "[9]", "[0, 2]") + "}", "xx");
  EXPECT_FALSE(runtime::read_header("m", span_of(other)).tensors.at("a").dtype);
}

TEST(FileHeader, TensorsInAnyOrder) {
  const std::string whole = file_of(
      R"({"b": )" + tensor("U8", "[2]", "[1, 3]") + R"(, "__metadata__": {"k": "v"}, "c": )" +
          tensor("U8", "[0]", "[1, 1]") + R"(, "a": )" + tensor("U8", "[]", "[0, 1]") + "}  ",
      "xyz");
  const runtime::FileHeader header = runtime::read_header("m", span_of(whole));
  EXPECT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(static_cast<char>(header.tensors.at("a").bytes[0]), 'x');
  EXPECT_EQ(static_cast<char>(header.tensors.at("b").bytes[1]), 'z');
  EXPECT_EQ(header.metadata, (std::vector<std::pair<std::string, std::string>>{{"k", "v"}}));
}

TEST(FileHeader, Sizes) {
  EXPECT_EQ(header_error(""),
            "[m @ 0] the file has 0 bytes, expected at least 8 with the size of the header");
  EXPECT_EQ(header_error("1234567"),
            "[m @ 0] the file has 7 bytes, expected at least 8 with the size of the header");
  EXPECT_EQ(header_error(std::string("\3\0\0\0\0\0\0\0{}", 10)),
            "[m @ 0] the header has 3 bytes, expected at most 2");
  EXPECT_EQ(header_error(std::string("\2\0\0\0\0\0\0\0{}", 10)), "");
  EXPECT_EQ(header_error(std::string(8, '\xff')),
            "[m @ 0] the header has 18446744073709551615 bytes, expected at most 0");
}

TEST(FileHeader, Errors) {
  const std::string good = tensor("U8", "[1]", "[0, 1]");
  const std::pair<std::string, std::string> cases[] = {
      {R"({"a": )" + good + "} x", "69] the JSON goes on with 'x', expected its end"},
      {R"({"__metadata__": {}, "__metadata__": {}})",
       "43] the metadata are there twice, expected once"},
      {R"({"__metadata__": {"k": "v", "k": "w"}})",
       "39] the key of metadata 'k' is there twice, expected once"},
      {R"({"__metadata__": {"k\u0001": "v"}})",
       "35] the key of metadata 'k\\001' holds a control character, expected none"},
      {R"({"__metadata__": {"k": 1}})", "31] the JSON has '1}}', expected a string"},
      {R"({"a": )" + good + R"(, "a": )" + good + "}",
       "72] tensor 'a' is there twice, expected once"},
      {R"({"a\n": )" + good + "}", "14] tensor 'a\\012' holds a control character, expected none"},
      {R"({"a": {"dtype": "U8", "dtype": "U8"}})",
       "37] tensor 'a' has dtype twice, expected it once"},
      {R"({"a": {"type": "U8"}})",
       "21] tensor 'a' has 'type', expected dtype, shape and data_offsets"},
      {R"({"a": {"dtype": "U8", "shape": [1]}})",
       "42] tensor 'a' has not all of dtype, shape and two data_offsets"},
      {R"({"a": {"dtype": "U8", "data_offsets": [0, 1]}})",
       "52] tensor 'a' has not all of dtype, shape and two data_offsets"},
      {R"({"a": {"shape": [1], "data_offsets": [0, 1]}})",
       "51] tensor 'a' has not all of dtype, shape and two data_offsets"},
      {R"({"a": )" + tensor("U8", "[1]", "[0]") + "}",
       "63] tensor 'a' has not all of dtype, shape and two data_offsets"},
      {R"({"a": )" + tensor("U8", "[1]", "[0, 1, 1]") + "}",
       "69] tensor 'a' has not all of dtype, shape and two data_offsets"},
      {R"({"a": )" + tensor("U8", "[1]", "[1, 0]") + "}",
       "66] tensor 'a' has bytes 1 to 0, expected them among the 1 behind the header"},
      {R"({"a": )" + tensor("U8", "[2]", "[0, 2]") + "}",
       "66] tensor 'a' has bytes 0 to 2, expected them among the 1 behind the header"},
      {R"({"a": )" + tensor("F8", "[9223372036854775808]", "[0, 1]") + "}",
       "40] tensor 'a' has a size of 9223372036854775808, expected at most 2^63 - 1"},
      {R"({"a": )" + tensor("U8", "[2]", "[0, 1]") + "}",
       "66] tensor 'a' has 1 bytes, expected those of U8 [2]"},
      {R"({"a": )" + tensor("U8", "[0]", "[0, 1]") + "}",
       "66] tensor 'a' has 1 bytes, expected those of U8 [0]"},
      {R"({"a": )" + tensor("U8", "[4294967296, 4294967296, 4294967296]", "[0, 0]") + "}",
       "99] tensor 'a' has 0 bytes, expected those of U8 [4294967296, 4294967296, 4294967296]"},
      {R"({"a": )" + tensor("U8", "[0]", "[1, 1]") + "}",
       "8] tensor 'a' begins at 1, expected 0, where the one before it ends"},
      {R"({"a": )" + good + R"(, "b": )" + good + "}",
       "8] tensor 'b' begins at 0, expected 1, where the one before it ends"},
      {"{}", "8] the tensors have 0 bytes, expected 1, as follow the header"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string found = header_error(file_of(text, "x"));
    EXPECT_EQ(found, "[m @ " + expected) << text;
  }
}

// More than safetensors allows, in a file that has as many; nobody reads their pages.
TEST(FileHeader, NoneHasMoreThanAHundredMillionBytes) {
  const auto error = [](std::uint64_t size) {
    AlignedBuffer bytes(std::size_t{100'000'100});
    std::memcpy(bytes.data(), &size, sizeof size);
    const std::span<const std::byte> all{static_cast<const std::byte*>(bytes.data()), bytes.size()};
    return error_of<FormatError>([&] { runtime::read_header("m", all); });
  };
  EXPECT_EQ(error(100'000'001),
            "[m @ 0] the header has 100000001 bytes, expected at most 100000000");
  EXPECT_NE(error(100'000'000).find("expected an object"), std::string::npos);
}

// ---- Networks ----------------------------------------------------------------------------------

const RnnSpec kSpec{.mode = RnnMode::kRnnTanh, .num_units = 1, .input_size = 1};

struct File {
  std::string name = R"("")", spec = spec_to_json(kSpec), crc = R"({"params": CRC})";
  std::string networks = "";  // made of these unless it is given
  std::string layout = "1", arithmetic = "7", checksum = "";
  std::string tensors = R"("params": )" + tensor("F32", "[4]", "[0, 16]");
  std::string others = "";
  std::string data = std::string(16, '\1');

  std::string network() const {
    std::string text =
        R"({"name": )" + name + R"(, "spec": )" + spec + R"(, "crc32c": )" + crc + "}";
    const std::size_t at = text.find("CRC");
    if (at != std::string::npos) text.replace(at, 3, std::to_string(crc32c(data.substr(0, 16))));
    return text;
  }
  std::string bytes() const {
    const std::string text = networks.empty() ? "[" + network() + "]" : networks;
    std::array<char, 16> sum{};
    std::snprintf(sum.data(), sum.size(), "%08x", crc32c(text));
    const std::string metadata =
        R"({"openrnn.networks": )" + json_quoted(text) + R"(, "openrnn.layout": ")" + layout +
        R"(", "openrnn.arithmetic": ")" + arithmetic + R"(", "openrnn.checksum": ")" +
        (checksum.empty() ? sum.data() : checksum) + "\"" + others + "}";
    std::string header = R"({"__metadata__": )" + metadata + ", " + tensors + "}";
    header.append((8 - header.size() % 8) % 8, ' ');
    return file_of(header, data);
  }
};

TEST(NetworkFiles, WhatOneSays) {
  File one;
  one.others = R"(, "author": "me")";
  one.tensors += R"(, "more": )" + tensor("I32", "[1]", "[16, 20]");
  one.data += "abcd";
  const std::string bytes = one.bytes();
  const NetworkFile file(span_of(bytes), "here");
  EXPECT_EQ(file.path(), "here");
  EXPECT_EQ(file.arithmetic_version(), 7);
  EXPECT_EQ(file.metadata(), (std::vector<std::pair<std::string, std::string>>{{"author", "me"}}));
  EXPECT_EQ(file.other_tensors(), std::vector<std::string>{"more"});
  ASSERT_EQ(file.networks().size(), 1u);
  const StoredNetwork& network = file.network("");
  EXPECT_EQ(network.spec, kSpec);
  EXPECT_EQ(network.params.shape, Shape{4});
  EXPECT_EQ(network.params.dtype, DType::kFloat32);
  EXPECT_EQ(network.tensors, std::vector<std::string>{"params"});
  EXPECT_EQ(network.checksums, std::vector<std::uint32_t>{crc32c(std::string(16, '\1'))});
  file.verify(network);
  expect_error<ArgumentError>([&] { file.network("x"); },
                              "[NetworkFile] 'x' is no network of here, expected one of: ''");
}

TEST(NetworkFiles, FilesAreClosedAfterTheyAreMapped) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const formats::TempFolder folder;
  formats::write_raw(folder / "m", File().bytes());
  const auto before = open_files();
  const NetworkFile file(folder / "m");
  EXPECT_EQ(open_files(), before);
}

TEST(NetworkFiles, AreMappedAsLongAsTheyAreRead) {
  const formats::TempFolder folder;
  const std::string path = folder / "m";
  formats::write_raw(path, File().bytes());
  const auto is_mapped = [&] {
    std::ifstream maps("/proc/self/maps");
    const std::string all{std::istreambuf_iterator<char>(maps), {}};
    return all.find(path) != std::string::npos;
  };
  {
    const NetworkFile file(path);
    EXPECT_TRUE(is_mapped());
  }
  EXPECT_FALSE(is_mapped());
}

// What a caller's memory holds is read in place where elements may lie there, else copied.
TEST(NetworkFiles, MemoryIsCopiedOnlyWhereItMust) {
  const std::string bytes = File().bytes();
  AlignedBuffer buffer(bytes.size() + 1);
  auto* const begin = static_cast<std::byte*>(buffer.data());
  for (const std::size_t shift : {0, 1}) {
    std::memcpy(begin + shift, bytes.data(), bytes.size());
    const NetworkFile file(std::span(begin + shift, bytes.size()));
    const auto* const params = static_cast<const std::byte*>(file.network("").params.data);
    EXPECT_EQ(begin <= params && params < begin + bytes.size(), shift == 0);
    file.verify(file.network(""));
  }
}

TEST(NetworkFiles, AnEmptyFileIsNone) {
  const formats::TempFolder folder;
  formats::write_raw(folder / "m", "");
  EXPECT_NE(error_of<FormatError>([&] { NetworkFile(folder / "m"); }), "");
  EXPECT_NE(error_of<FormatError>([&] { NetworkFile(span_of("")); }), "");
}

TEST(NetworkFiles, WhatIsNoFileIsRefusedAtOnce) {
  const formats::TempFolder folder;
  const auto error = [&](const std::string& path) {
    return error_of<IoError>([&] { NetworkFile{path}; });
  };
  std::filesystem::create_directory(folder / "d");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "d", folder / "pipe", std::string("/dev/null")}) {
    EXPECT_EQ(error(path), "[NetworkFile] " + path + ": no regular file");
  }
  EXPECT_EQ(error_of<ArgumentError>([&] { NetworkFile{folder / std::string("a\0b", 3)}; }),
            "[NetworkFile] the path holds a zero byte, expected none");
  EXPECT_EQ(error(folder / "none"),
            "[NetworkFile] " + (folder / "none") + ": No such file or directory");
}

// Both names and no name: a file of one network gives it without one.
TEST(NetworkFiles, TheOnlyNetworkNeedsNoName) {
  File one;
  one.name = R"("a")";
  one.tensors = R"("a/params": )" + tensor("F32", "[4]", "[0, 16]");
  const std::string bytes = one.bytes();
  EXPECT_EQ(load_packed(span_of(bytes))->spec(), kSpec);
  EXPECT_EQ(load_packed(span_of(bytes), "a")->spec(), kSpec);
  const formats::TempFolder folder;
  formats::write_raw(folder / "m", bytes);
  for (const int threads : {0, 2}) {
    const ModelOptions options{.max_threads = threads};
    EXPECT_EQ(load_packed(span_of(bytes), "a", options)->options().max_threads, threads);
    EXPECT_EQ(load_packed(folder / "m", {}, options)->options().max_threads, threads);
  }
  EXPECT_NE(error_of<ArgumentError>([&] { load_packed(span_of(bytes), "b"); }).find("'b' is no"),
            std::string::npos);
  std::string changed = bytes;
  changed.back() = 'x';
  expect_error<FormatError>([&] { load_packed(span_of(changed)); },
                            "[memory @ " + std::to_string(bytes.size() - 16) +
                                "] tensor 'a/params' has the checksum " +
                                std::to_string(crc32c(std::string(15, '\1') + "x")) +
                                ", expected " + std::to_string(crc32c(std::string(16, '\1'))));
}

TEST(NetworkFiles, OneOfSeveralNeedsItsName) {
  File first, second;
  first.name = R"("a")";
  second.name = R"("b")";
  File both;
  both.networks = "[" + first.network() + ", " + second.network() + "]";
  both.tensors = R"("a/params": )" + tensor("F32", "[4]", "[0, 16]") + R"(, "b/params": )" +
                 tensor("F32", "[4]", "[16, 32]");
  both.data += both.data;
  const std::string bytes = both.bytes();
  EXPECT_EQ(load_packed(span_of(bytes), "b")->spec(), kSpec);
  expect_error<ArgumentError>(
      [&] { load_packed(span_of(bytes)); },
      "[NetworkFile] '' is no network of memory, expected one of: 'a', 'b'");
}

template <class E = FormatError>
std::string refusal_of(const File& file) {
  const std::string bytes = file.bytes();
  return error_of<E>([&] { NetworkFile(span_of(bytes), "m"); });
}

template <class E = FormatError>
void expect_refused(const File& file, const std::string& expected) {
  const std::string error = refusal_of<E>(file);
  // Where the place is not given, it depends on the text of the network.
  const std::size_t begin = expected.starts_with('[') ? 0 : error.find("] ") + 2;
  EXPECT_EQ(error.substr(begin), expected);
}

TEST(NetworkFiles, Versions) {
  for (const char* text : {"0", "-1", "x", "1x", "", "99999999999999999999"}) {
    const std::string rest = " '" + std::string(text) + "', expected a version from 1 on";
    expect_refused({.layout = text}, "[m @ 0] the metadata have openrnn.layout" + rest);
    expect_refused({.arithmetic = text}, "[m @ 0] the metadata have openrnn.arithmetic" + rest);
  }
  expect_refused<UnsupportedError>(
      {.layout = "2"},
      "[NetworkFile] m has layout 2, expected at most 1: a later OpenRNN wrote it");
  const std::string error = refusal_of({.checksum = "00000000"});
  EXPECT_TRUE(error.starts_with("[m @ 0] openrnn.networks has the checksum ")) << error;
  EXPECT_TRUE(error.ends_with(", expected openrnn.checksum, 00000000")) << error;
  const std::string none = file_of(R"({"__metadata__": {}})", "");
  expect_error<FormatError>([&] { NetworkFile(span_of(none), "m"); },
                            "[m @ 0] this is a safetensors file without openrnn.networks in its "
                            "metadata, expected a file of OpenRNN");
}

TEST(NetworkFiles, WhatTheMetadataLackIsNamed) {
  const auto error = [](const std::string& more) {
    const std::string bytes =
        file_of(R"({"__metadata__": {"openrnn.networks": "[]")" + more + "}}", "");
    return error_of<FormatError>([&] { NetworkFile(span_of(bytes), "m"); });
  };
  std::array<char, 16> sum{};
  std::snprintf(sum.data(), sum.size(), "%08x", crc32c("[]"));
  const std::string layout = R"(, "openrnn.layout": "1")",
                    both = layout + R"(, "openrnn.arithmetic": "1")",
                    wrong = std::string("[m @ 0] openrnn.networks has the checksum ") + sum.data() +
                            ", expected openrnn.checksum, ";
  const std::string version = " not at all, expected a version from 1 on";
  EXPECT_EQ(error(""), "[m @ 0] the metadata have openrnn.layout" + version);
  EXPECT_EQ(error(layout), "[m @ 0] the metadata have openrnn.arithmetic" + version);
  EXPECT_EQ(error(both), wrong + "which is not there");
  EXPECT_EQ(error(both + R"(, "openrnn.checksum": "1")"), wrong + "1");
}

// Outputs and cells of other sizes, of more than one direction.
TEST(NetworkFiles, StatesOfAProjectionInBothDirections) {
  const RnnSpec spec{
      .num_units = 3, .input_size = 1, .direction = Direction::kBidirectional, .num_proj = 2};
  const std::size_t size = 4 * static_cast<std::size_t>(params_size(spec));
  const auto file = [&](const std::string& h, const std::string& c) {
    File made;
    made.spec = spec_to_json(spec);
    made.crc = R"({"params": 1, "initial_h": 2, "initial_c": 3})";
    const auto range = [&](std::size_t begin, std::size_t end) {
      return "[" + std::to_string(size + begin) + ", " + std::to_string(size + end) + "]";
    };
    made.tensors =
        R"("params": )" +
        tensor("F32", "[" + std::to_string(size / 4) + "]", "[0, " + std::to_string(size) + "]") +
        R"(, "initial_h": )" + tensor("F32", h, range(0, 16)) + R"(, "initial_c": )" +
        tensor("F32", c, range(16, 40));
    made.data = std::string(size + 40, '\1');
    return made;
  };
  const std::string bytes = file("[2, 2]", "[2, 3]").bytes();
  const NetworkFile read(span_of(bytes));
  const StoredNetwork& network = read.networks().at(0);
  EXPECT_EQ(network.initial_h->shape, (Shape{2, 2}));
  EXPECT_EQ(network.initial_c->shape, (Shape{2, 3}));
  const auto* const params = static_cast<const std::byte*>(network.params.data);
  EXPECT_EQ(network.initial_h->data, params + size);
  EXPECT_EQ(network.initial_c->data, params + size + 16);
  EXPECT_EQ(network.checksums, (std::vector<std::uint32_t>{1, 2, 3}));
  expect_refused(file("[4, 1]", "[2, 3]"),
                 "tensor 'initial_h' is float32 [4, 1], expected float32 [2, 2]");
  expect_refused(file("[2, 2]", "[3, 2]"),
                 "tensor 'initial_c' is float32 [3, 2], expected float32 [2, 3]");
}

TEST(NetworkFiles, Errors) {
  const std::string twice = R"("params": )" + tensor("F32", "[4]", "[0, 16]");
  const File good;
  expect_refused({.networks = "[" + good.network() + "] 1"},
                 "the JSON goes on with '1', expected its end");
  expect_refused({.networks = "{}"}, "[m @ 0] the JSON has '{}', expected an array");
  expect_refused({.networks = "[" + good.network() + ", " + good.network() + "]"},
                 "tensor 'params' is of two networks, expected one");
  expect_refused({.networks = R"([{"name": "", "name": ""}])"},
                 "[m @ 20] name twice, expected it once");
  expect_refused({.networks = R"([{"size": 1}])"},
                 "[m @ 8] a network has 'size', expected name, spec and crc32c");
  expect_refused({.networks = R"([{"name": ""}])"},
                 "[m @ 12] a network has not all of name, spec and crc32c");
  expect_refused({.crc = "{}"}, "the network '' has no params");
  expect_refused({.crc = R"({"params": 4294967296})"},
                 "4294967296, expected a checksum of 32 bits");
  expect_refused({.crc = R"({"bias": CRC})"}, "tensor 'bias' is not there, expected it");
  expect_refused({.name = R"("a")"}, "tensor 'a/params' is not there, expected it");
  expect_refused({.spec = R"({"num_units": 1, "num_units": 1})"},
                 "the field 'num_units' is there twice, expected once");
  expect_refused({.spec = R"({"num_units": 0})"},
                 "[m @ 37] [RnnSpec] num_units is 0, expected 1 to 4194304");
  const std::string error = refusal_of({.spec = R"({"units": 1})"});
  EXPECT_NE(error.find("] [RnnSpec] 'units' is no field, expected one of rnn_mode, "),
            std::string::npos)
      << error;
  expect_refused({.spec = R"({"cell_clip": [1.0]})"}, "1 numbers, expected two");
  expect_refused({.spec = R"({"cell_clip": [1.0, 2.0, 3.0]})"},
                 "more than two numbers, expected two");
  expect_refused({.spec = R"({"cell_clip": ["one", 1.0]})"},
                 "'one', expected a number, \"inf\" or \"-inf\"");
  File two;
  two.networks = "[" + good.network() + ", " + good.network() + "]";
  two.networks.replace(two.networks.rfind(R"("params")"), 8, R"("initial_h")");
  two.tensors += R"(, "initial_h": )" + tensor("F32", "[1, 1]", "[16, 20]");
  two.data += std::string(4, '\1');
  expect_refused(two, "the network '' has no params");
}

TEST(NetworkFiles, PartsHaveTheShapesOfTheirNetwork) {
  const auto with = [](const std::string& key, const std::string& code, const std::string& shape,
                       std::size_t bytes) {
    File file;
    file.crc = R"({"params": CRC, ")" + key + R"(": 1})";
    file.tensors +=
        ", \"" + key + "\": " + tensor(code, shape, "[16, " + std::to_string(16 + bytes) + "]");
    file.data.append(bytes, '\2');
    return file;
  };
  const auto accepted = [](const File& file) {
    const std::string bytes = file.bytes();
    return NetworkFile(span_of(bytes)).networks().at(0).tensors.size() == 2;
  };
  EXPECT_TRUE(accepted(with("initial_h", "F32", "[1, 1]", 4)));
  EXPECT_TRUE(accepted(with("slots/m", "F32", "[4]", 16)));
  EXPECT_TRUE(accepted(with("slots/m", "F64", "[4]", 32)));
  expect_refused(with("initial_h", "F32", "[1]", 4),
                 "tensor 'initial_h' is float32 [1], expected float32 [1, 1]");
  expect_refused(with("initial_h", "F16", "[1, 1]", 2),
                 "tensor 'initial_h' is float16 [1, 1], expected float32 [1, 1]");
  expect_refused(with("slots/m", "F32", "[3]", 12),
                 "tensor 'slots/m' is float32 [3], expected float32 [4]");
  expect_refused(with("slots/m", "I32", "[4]", 16),
                 "tensor 'slots/m' is int32 [4], expected floating point [4]");
  expect_refused(with("slots/m", "F8", "[4]", 4),
                 "tensor 'slots/m' is of another type [4], expected floating point [4]");
  // A plain network has no cells.
  expect_refused(with("initial_c", "F32", "[1, 1]", 4),
                 "the network '' has 'initial_c', expected params, initial_h, initial_c (of cells) "
                 "or slots/NAME");
  expect_refused(
      with("bias", "F32", "[1]", 4),
      "the network '' has 'bias', expected params, initial_h, initial_c (of cells) or slots/NAME");
  expect_refused({.tensors = R"("params": )" + tensor("F64", "[2]", "[0, 16]")},
                 "tensor 'params' is float64 [2], expected float32 [4]");
  // Elements lie at multiples of their size.
  File shifted;
  shifted.tensors = R"("a": )" + tensor("U8", "[1]", "[0, 1]") + R"(, "params": )" +
                    tensor("F32", "[4]", "[1, 17]");
  shifted.data += '\1';
  expect_refused(shifted, "tensor 'params' is not at a multiple of 4 bytes, expected it there");
}

}  // namespace
}  // namespace openrnn
