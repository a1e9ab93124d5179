// Arrays of NumPy: what is read, what is refused, what is written.
#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include <cstring>

#include "formats/coding.h"
#include "formats/npy/header.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

// A file of version 1 with this header and these bytes.
std::string npy(std::string header, const std::string& bytes, char version = 1) {
  const std::size_t prefix = version == 1 ? 10 : 12;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  const auto size = static_cast<std::uint32_t>(header.size());
  std::string out = std::string("\x93NUMPY") + version + '\0';
  out.append(reinterpret_cast<const char*>(&size), version == 1 ? 2 : 4);
  return out + header + bytes;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Array read(const std::string& bytes) {
  const TempFolder folder;
  write_raw(folder / "a.npy", bytes);
  return read_npy(folder / "a.npy");
}

TEST(Npy, EveryTypeThereAndBack) {
  const TempFolder folder;
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt32,
                            DType::kInt64, DType::kUInt8, DType::kBool}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3, 1}}) {
      Array array(dtype, shape);
      for (std::size_t i = 0; i < array.size_bytes(); ++i) {
        static_cast<unsigned char*>(array.data())[i] = static_cast<unsigned char>(i % 2);
      }
      write_npy(folder / "a", array.view());
      const Array found = read_npy(folder / "a");
      EXPECT_EQ(found.dtype(), dtype);
      EXPECT_EQ(found.shape(), shape);
      EXPECT_EQ(std::memcmp(found.data(), array.data(), array.size_bytes()), 0);
      EXPECT_EQ((read_file(folder / "a").size() - array.size_bytes()) % 64, 0U);
    }
  }
  EXPECT_MESSAGE(UnsupportedError, write_npy(folder / "b", Array(DType::kBfloat16, {1}).view()),
                 "[write_npy] the dtype is bfloat16, which NumPy's files have no name for");
}

TEST(Npy, ColumnsFirstBecomeRowsFirst) {
  const std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Array array =
      read(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 2), }", bytes_of(values)));
  ASSERT_EQ(array.shape(), (Shape{2, 3, 2}));
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_EQ(array.as<float>()[(i * 3 + j) * 2 + k], static_cast<float>(i + 2 * j + 6 * k));
      }
    }
  }
}

TEST(Npy, EveryFormOfAHeader) {
  const std::string bytes = bytes_of<double>({1.5, 2.5});
  for (const char* header : {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
                             "{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<f8\"}",
                             "{'shape': (2), 'descr': '<f8', 'fortran_order': True}"}) {
    for (const char version : {1, 2, 3}) {
      const Array array = read(npy(header, bytes, version));
      EXPECT_EQ(array.shape(), Shape{2}) << header;
      EXPECT_EQ(array.as<double>()[1], 2.5);
    }
  }
}

TEST(Npy, WhatIsRefused) {
  const std::string four(4, '\0');
  const auto header = [](const std::string& descr, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  EXPECT_MESSAGE(UnsupportedError, read(npy(header(">f4", "(1,)"), four)), "'>f4'");
  EXPECT_MESSAGE(UnsupportedError, read(npy(header("|O", "(1,)"), four)), "'|O'");
  EXPECT_MESSAGE(
      UnsupportedError,
      read(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four)),
      "structures");
  EXPECT_MESSAGE(UnsupportedError, read(npy(header("<f4", "(1,)"), four, 9)), "version 9.0");
  for (const std::string shape : {"(2,)", "(0,)", "(1, 4294967296, 4294967296, 4294967296)"}) {
    EXPECT_MESSAGE(FormatError, read(npy(header("<f4", shape), four)), "there are 4 bytes");
  }
  for (const std::string& bad :
       {header("<f4", "(-1,)"), header("<f4", "(1"), header("<f4", "1"), header("<f4", "(,)"),
        header("<f4", "(99999999999999999999,)"), std::string("{'descr': '<f4'}"),
        std::string("[]"), std::string("{'descr': '<f4', 'descr': '<f4'}"),
        std::string("{'more': '<f4'}"), std::string("{'fortran_order': Maybe}"),
        header("<f4", "(1,)") + " x", std::string("{'descr"), std::string("{'descr': 3}")}) {
    EXPECT_MESSAGE(FormatError, read(npy(bad, four)), "expected a dictionary of");
  }
  EXPECT_MESSAGE(FormatError, read(npy("{'descr': [('name', '<f4'), [3]", four)),
                 "the header has '[('name', '<f4')', expected a dictionary of descr");
  EXPECT_MESSAGE(FormatError, read(npy(header("|b1", "(4,)"), std::string("\1\0\2\1", 4))),
                 "a bool is 2");
  EXPECT_MESSAGE(FormatError, read("PK\3\4 and so on"), "no array of NumPy");
  const std::string good = npy(header("<f4", "(1,)"), four);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(read(good.substr(0, size)), FormatError) << size;
  }
  std::string long_header = good;
  long_header[8] = long_header[9] = '\x7f';
  EXPECT_MESSAGE(FormatError, read(long_header), "the header has 32639 bytes");
}

// What the header says of the elements, whatever can be read of them.
TEST(Npy, TypesOfElements) {
  const std::tuple<const char*, const char*, NpyKind, std::uint64_t> cases[] = {
      {"<f2", "float16", NpyKind::kNumbers, 2},
      {"=f4", "=f4", NpyKind::kOther, 4},
      {"f4", "f4", NpyKind::kOther, 4},
      {"<c8", "complex64", NpyKind::kNumbers, 8},
      {"<c16", "complex128", NpyKind::kNumbers, 16},
      {">i2", "big-endian int16", NpyKind::kNumbers, 2},
      // A single byte has no order.
      {"|u1", "uint8", NpyKind::kNumbers, 1},
      {"u1", "uint8", NpyKind::kNumbers, 1},
      {"<i1", "int8", NpyKind::kNumbers, 1},
      {">b1", "bool", NpyKind::kNumbers, 1},
      {"|u2", "|u2", NpyKind::kOther, 2},
      {"<U5", "string", NpyKind::kUnicode, 20},
      {"<U0", "string", NpyKind::kUnicode, 0},
      {">U5", ">U5", NpyKind::kOther, 5},
      {"U5", "U5", NpyKind::kOther, 5},
      {"|S7", "string", NpyKind::kBytes, 7},
      {"S7", "string", NpyKind::kBytes, 7},
      {">S7", "string", NpyKind::kBytes, 7},
      {"|S999999999", "string", NpyKind::kBytes, 999999999},
      {"|S1000000000", "|S1000000000", NpyKind::kOther, 0},
      {"|S-1", "|S-1", NpyKind::kOther, 0},
      {"|S7x", "|S7x", NpyKind::kOther, 0},
      {"|S", "|S", NpyKind::kOther, 0},
      {"|V2", "|V2", NpyKind::kOther, 2},
      {"|O", "object", NpyKind::kObjects, 0},
      {"<", "<", NpyKind::kOther, 0},
      {"<M8[s]", "<M8[s]", NpyKind::kOther, 0},
  };
  for (const auto& [descr, name, kind, bytes] : cases) {
    const std::string file =
        npy(std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (0,), }", "");
    const NpyHeader header = read_npy_header(MemorySource("a", file));
    EXPECT_EQ(header.descr, descr);
    EXPECT_EQ(header.type.name, name) << descr;
    EXPECT_EQ(header.type.kind, kind) << descr;
    EXPECT_EQ(header.type.element_bytes, bytes) << descr;
  }
}

// How many bytes there are is known where an element has some.
TEST(Npy, BytesBehindTheHeader) {
  const auto header = [](const char* descr, const char* shape, const std::string& bytes) {
    const std::string file = npy(
        std::string("{'descr': ") + descr + ", 'fortran_order': False, 'shape': " + shape + ", }",
        bytes);
    return read_npy_header(MemorySource("a", file)).shape;
  };
  EXPECT_EQ(header("'|V2'", "(2,)", "abcd"), Shape{2});
  EXPECT_EQ(header("'<U1'", "(1,)", "abcd"), Shape{1});
  EXPECT_EQ(header("'|O'", "(2,)", "a pickle"), Shape{2});
  EXPECT_EQ(header("[('a', '<f4', [1, 2])]", "(2,)", "any"), Shape{2});
  for (const char* descr : {"'|V2'", "'|S2'", "'<i2'"}) {
    EXPECT_MESSAGE(FormatError, header(descr, "(2,)", "abc"), "there are 3 bytes");
    EXPECT_MESSAGE(FormatError, header(descr, "(2,)", "abcde"), "there are 5 bytes");
  }
  for (const char* descr : {"'<f4'", "'|O'"}) {
    EXPECT_MESSAGE(FormatError, header(descr, "(4294967296, 4294967296)", ""), "there are 0 bytes");
  }
  EXPECT_EQ(header("'<f4'", "(4294967296, 0, 4294967296)", ""), (Shape{4294967296, 0, 4294967296}));
}

TEST(Npy, VersionsAndLengths) {
  const std::string bytes(4, '\0');
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  for (const char version : {0, 4}) {
    EXPECT_MESSAGE(UnsupportedError, read(npy(header, bytes, version)),
                   "has version " + std::to_string(version) + ".0");
  }
  for (const char version : {1, 2, 3}) {
    std::string minor = npy(header, bytes, version);
    minor[7] = 1;
    EXPECT_MESSAGE(UnsupportedError, read(minor), "has version " + std::to_string(version) + ".1");
  }
  // The longest header that NumPy takes.
  for (const std::size_t size : {10000U, 10001U}) {
    std::string text = header;
    text.resize(size, ' ');
    std::string file = std::string("\x93NUMPY\1\0", 8);
    put_fixed(&file, static_cast<std::uint16_t>(size));
    file += text + bytes;
    if (size == 10000) {
      EXPECT_EQ(read(file).shape(), Shape{1});
    } else {
      EXPECT_MESSAGE(FormatError, read(file), "the header has 10001 bytes, expected at most 10000");
    }
  }
}

TEST(Npy, ColumnsOfEveryRank) {
  const auto shape_of = [](const char* shape, std::size_t count) {
    std::vector<std::uint8_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(i);
    const Array array =
        read(npy(std::string("{'descr': '|u1', 'fortran_order': True, 'shape': ") + shape + ", }",
                 bytes_of(values)));
    return std::vector<int>(array.as<std::uint8_t>().begin(), array.as<std::uint8_t>().end());
  };
  EXPECT_EQ(shape_of("()", 1), std::vector<int>{0});
  EXPECT_EQ(shape_of("(3,)", 3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(shape_of("(1, 3)", 3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(shape_of("(2, 2)", 4), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(shape_of("(2, 1, 2)", 4), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(shape_of("(0, 2)", 0), std::vector<int>{});
}

}  // namespace
}  // namespace openrnn::formats
