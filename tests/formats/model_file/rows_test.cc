// ModelFile::read_rows gives what read() gives, some rows at a time.

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include <cstring>

#include "base/message.h"
#include "formats/hdf5/data/datasets.h"
#include "formats/temp_folder.h"
#include "formats/tensorflow/tensorflow.h"
#include "support/expect_error.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

namespace fs = std::filesystem;

/// What read_rows gave, joined, and where each call began.
struct Rows {
  std::string bytes;
  std::vector<std::int64_t> firsts;
};

Rows rows_of(const ModelFile& file, const std::string& name) {
  const TensorInfo& info = file.info(name);
  Rows found;
  std::int64_t next = 0;
  file.read_rows(name, [&](std::int64_t first, const ConstArrayView& rows) {
    EXPECT_EQ(first, next);
    EXPECT_EQ(rows.shape.size(), info.shape.size());
    if (info.shape.size() > 1) {
      EXPECT_EQ(Shape(rows.shape.begin() + 1, rows.shape.end()),
                Shape(info.shape.begin() + 1, info.shape.end()));
      next += rows.shape[0];
    } else {
      EXPECT_EQ(rows.shape, info.shape);
    }
    EXPECT_EQ(dtype_name(rows.dtype), info.dtype);
    found.firsts.push_back(first);
    found.bytes.append(static_cast<const char*>(rows.data), rows.size_bytes());
  });
  if (info.shape.size() > 1) {
    EXPECT_EQ(next, info.shape[0]);
  }
  return found;
}

std::string bytes_of(const Array& array) {
  return {static_cast<const char*>(array.data()), array.size_bytes()};
}

TEST(Rows, OfEveryGoodFileAreItsElements) {
  int tensors = 0;
  for (const char* folder :
       {"hdf5", "keras_archive", "npz", "safetensors", "tf_file", "torch_file"}) {
    for (const auto& item :
         fs::directory_iterator(source_file(std::string("fuzz/corpus/") + folder))) {
      const std::string path = item.path().string();
      if (!item.path().filename().string().starts_with("good_")) continue;
      if (item.path().filename() == "good_index") continue;  // of files that are not there
      SCOPED_TRACE(path);
      const ModelFile file(path);
      for (const TensorInfo& info : file.tensors()) {
        SCOPED_TRACE(info.name);
        Array whole;
        const std::string error = error_of([&] { whole = file.read(info.name); });
        Rows rows;
        std::string of_rows = error_of([&] { rows = rows_of(file, info.name); });
        EXPECT_EQ(of_rows, error);
        if (error.empty()) {
          EXPECT_EQ(rows.bytes, bytes_of(whole));
        }
        ++tensors;
      }
    }
  }
  EXPECT_GT(tensors, 100);
}

// Some 7 MB, of which no two rows are equal.
Array large(std::int64_t rows, std::int64_t columns) {
  Array array(DType::kFloat32, {rows, columns});
  std::uint32_t state = 1;
  for (float& value : array.as<float>()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8);
  }
  return array;
}

/// A file of each kind that holds `wide` (rows of 1.2 MB) and `high` (rows of 4 KB).
std::vector<std::string> large_files(const TempFolder& folder, const Array& wide,
                                     const Array& high) {
  const std::vector<NamedView> tensors{{"wide", wide.view()}, {"high", high.view()}};
  write_safetensors(folder / "m.safetensors", tensors);
  write_torch_state_dict(folder / "m.pt", tensors);
  write_npz(folder / "m.npz", tensors);
  write_hdf5(folder / "m.h5", tensors);
  TensorBundleWriter bundle(folder / "m.ckpt");
  for (const NamedView& tensor : tensors) bundle.add(tensor.name, tensor.values);
  bundle.finish();
  return {folder / "m.safetensors", folder / "m.pt", folder / "m.npz", folder / "m.h5",
          folder / "m.ckpt"};
}

TEST(Rows, OfLargeTensorsComeInParts) {
  const TempFolder folder;
  const Array wide = large(6, 300001), high = large(1700, 1023);
  for (const std::string& path : large_files(folder, wide, high)) {
    SCOPED_TRACE(path);
    const ModelFile file(path);
    const Rows of_wide = rows_of(file, "wide"), of_high = rows_of(file, "high");
    EXPECT_EQ(of_wide.bytes, bytes_of(wide));
    EXPECT_EQ(of_wide.firsts, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(of_high.bytes, bytes_of(high));
    EXPECT_GT(of_high.firsts.size(), 2u);
  }
}

void flip_byte(const std::string& path, const std::string& of) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::size_t at = bytes.find(of);
  ASSERT_NE(at, std::string::npos);
  bytes[at + of.size() / 2] = static_cast<char>(bytes[at + of.size() / 2] ^ 1);
  write_raw(path, bytes);
}

TEST(Rows, AWrongChecksumIsAnErrorAfterTheLast) {
  const TempFolder folder;
  const Array wide = large(6, 300001), high = large(1700, 1023);
  large_files(folder, wide, high);
  flip_byte(folder / "m.pt", bytes_of(wide));
  flip_byte(folder / "m.npz", bytes_of(wide));
  flip_byte(folder / "m.ckpt.data-00000-of-00001", bytes_of(wide));
  for (const char* name : {"m.pt", "m.npz", "m.ckpt"}) {
    SCOPED_TRACE(name);
    const ModelFile file(folder / name);
    std::int64_t rows = 0;
    EXPECT_THROW(file.read_rows("wide", [&](std::int64_t,
                                            const ConstArrayView& some) { rows += some.shape[0]; }),
                 FormatError);
    EXPECT_EQ(rows, 6);
    EXPECT_EQ(rows_of(file, "high").bytes, bytes_of(high));
  }
}

TEST(Rows, ErrorsOfTheVisitorAndOfTheName) {
  const TempFolder folder;
  const Array values = large(3, 5);
  write_npz(folder / "m.npz", std::vector<NamedView>{{"a", values.view()}});
  const ModelFile file(folder / "m.npz");
  EXPECT_THROW(
      file.read_rows("a", [](std::int64_t, const ConstArrayView&) { throw std::out_of_range(""); }),
      std::out_of_range);
  EXPECT_MESSAGE(ArgumentError, file.read_rows("b", {}), "[read_rows] 'b' is not in");
}

/// Every part of the bytes, read and visited, is that of the whole.
void expect_parts(const ByteSource& source, const std::string& whole) {
  ASSERT_EQ(source.size(), whole.size());
  for (std::size_t first = 0; first <= whole.size(); first += 3) {
    for (std::size_t count = 0; first + count <= whole.size(); count += 2) {
      SCOPED_TRACE(message(first, " + ", count));
      EXPECT_EQ(source.read_string(first, count), whole.substr(first, count));
      std::string visited;
      source.visit(first, count, 4, [&](std::string_view bytes) { visited += bytes; });
      EXPECT_EQ(visited, whole.substr(first, count));
    }
  }
  EXPECT_EQ(source.mapped(), whole);
  EXPECT_THROW(source.read_string(whole.size(), 1), FormatError);
  EXPECT_THROW(source.read_string(1, whole.size()), FormatError);
  EXPECT_THROW(source.visit(1, whole.size(), 4, [](auto) {}), FormatError);
}

TEST(Sources, PartsOfATensorOfABundle) {
  const TempFolder folder;
  const Array values = large(3, 5);
  const std::vector<NamedTensor> tensors{{"v", values}, {"text", StringTensor{{}, {"some words"}}}};
  write_tensor_bundle(folder / "m", tensors);
  const FileContents contents = read_bundle({folder / "m", "a bundle"});
  ASSERT_EQ(contents.extents.size(), 2U);
  EXPECT_EQ(contents.tensors[0].name, "text");
  EXPECT_EQ(contents.tensors[0].bytes, 10U);
  EXPECT_EQ(contents.extents[0].source->path(), folder / "m");
  expect_parts(*contents.extents[0].source, "some words");
  EXPECT_FALSE(contents.extents[0].source_checks);
  EXPECT_EQ(contents.tensors[1].name, "v");
  EXPECT_EQ(contents.extents[1].source->path(), folder / "m");
  EXPECT_TRUE(contents.extents[1].source_checks);
  expect_parts(*contents.extents[1].source, bytes_of(values));
}

TEST(Sources, PartsOfChunks) {
  // Two rows of three bytes in chunks of two columns, the last of which ends outside.
  const std::string stored = "abdec.f.";
  const MemorySource file("F", stored);
  const ChunkedSource source(file,
                             {.shape = {2, 3},
                              .chunk = {2, 2},
                              .element_bytes = 1,
                              .chunks = {{{0, 0}, 0, 4, 0}, {{0, 2}, 4, 4, 0}}},
                             6);
  EXPECT_EQ(source.path(), "F");
  expect_parts(source, "abcdef");
}

}  // namespace
}  // namespace openrnn::formats
