// What a file is taken for by its first bytes, and what is said of one that is no model.
#include "formats/model_file/identify.h"

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include <filesystem>

#include "formats/file/atomic_file.h"
#include "formats/file/byte_source.h"
#include "formats/model_file/looks_like.h"
#include "formats/temp_folder.h"
#include "formats/zip/zip_writer.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

TEST(Identify, WhatAFileLooksLike) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "an empty file"},
      {"PK\5\6", "an empty zip archive"},
      {"\x93NUMPY\1", "a NumPy array"},
      {"\x1f\x8b\x08", "a gzip archive"},
      {"BZh9", "a bzip2 archive"},
      {"\xfd\x37zXZ\0\0"s, "an xz archive"},
      {"\x28\xb5\x2f\xfd\4", "a zstd archive"},
      {"7z\xbc\xaf\x27\x1c", "a 7z archive"},
      {"Rar!\x1a\x07\1", "a RAR archive"},
      {std::string(257, 'n') + "ustar", "a tar archive"},
      {std::string(256, 'n') + "ustar", "a text file"},
      {"GGUF\3", "a GGUF file"},
      {"ggml", "a GGML file"},
      {"\x1c\0\0\0TFL3"s, "a TensorFlow Lite model"},
      {"\x1c\0\0\0ORTM"s, "a model of ONNX Runtime's own format"},
      {"\x80\2}", "a Python pickle"},
      {"\x80\3}", "a Python pickle"},
      {"\x80\4}", "a Python pickle"},
      {"\x80\5}", "a Python pickle"},
      {"\x80\6}", "a file"},
      {"PAR1", "a Parquet file"},
      {"SQLite format 3\0"s, "an SQLite database"},
      {"\x89PNG\r\n\x1a\n", "a PNG image"},
      {"\xff\xd8\xff\xe0", "a JPEG image"},
      {"GIF89a", "a GIF image"},
      {"RIFFsizeWEBP", "a WebP image"},
      {"RIFFsizeWAVE", "a WAVE sound"},
      {"OggS", "an Ogg sound"},
      {"fLaC", "a FLAC sound"},
      {"ID3\4", "an MP3 sound"},
      {"\0\0\0\x20"s + "ftypisom", "an MPEG-4 film or sound"},
      {"%PDF-1.7", "a PDF document"},
      {"\x7f"s + "ELF\2", "a program or library"},
      {"MZ\x90", "a program or library of Windows"},
      {"#!/bin/sh", "a script"},
      {"version https:x", "a pointer of Git LFS, not the file itself"},
      {std::string(100, '\0'), "a file of zeros"},
      {" \n\xef\xbb\xbf<!DOCTYPE html>", "an HTML page"},
      {"<HTML lang='en'>", "an HTML page"},
      {"<?xml version", "an XML file"},
      {"<?XML version", "an XML file"},
      {"<htm", "a text file"},
      {" ", "a text file"},
      {"words\tand\r\nlines", "a text file"},
      {"w\xc3\xb6rter", "a text file"},
      // The last character may be cut, no other, and nothing that steers a terminal is text.
      {"w\xf0\x9f\x98", "a text file"},
      {"w\xc3", "a text file"},
      {"w\xc3 and more of it", "a file"},
      {"\xc3", "a file"},
      {"\x1b[2J", "a file"},
      {"a\0b"s, "a file"},
  };
  for (const auto& [bytes, what] : cases) EXPECT_EQ(looks_like(bytes), what) << bytes;
}

TEST(Identify, WhatAFolderLooksLike) {
  const TempFolder folder;
  EXPECT_EQ(folder_looks_like(folder.path()), "an empty folder");
  const char* const expected[] = {
      "a folder with 'a'",
      "a folder with 2 files: 'a', 'b'",
      "a folder with 3 files: 'a', 'b', 'c'",
      "a folder with 4 files: 'a', 'b', 'c', 'd'",
      "a folder with 5 files: 'a', 'b', 'c', 'd', ..",
  };
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    write_raw(folder / std::string(1, static_cast<char>('a' + i)), "");
    EXPECT_EQ(folder_looks_like(folder.path()), expected[i]);
    EXPECT_EQ(identify_file(folder.path()).what, expected[i]);
  }
  EXPECT_MESSAGE(FormatError, ModelFile(folder.path()), "this is a folder with 5 files");
}

std::string zip_of(const std::vector<std::string>& names) {
  const TempFolder folder;
  replace_file(folder / "z", [&](OutputFile& file) {
    ZipWriter writer(&file, 1);
    for (const std::string& name : names) writer.add(name, {"x"});
    writer.finish();
  });
  return read_file(folder / "z");
}

TEST(Identify, ArchivesByTheirNames) {
  const std::tuple<std::vector<std::string>, FileKind, const char*> cases[] = {
      {{"a/data.pkl", "a/data/0"}, FileKind::kTorch, "a PyTorch file"},
      {{"a/data.pkl", "a/constants.pkl"}, FileKind::kTorchScript, "a TorchScript archive"},
      {{"a/data.pkl", "b/constants.pkl"}, FileKind::kTorch, "a PyTorch file"},
      {{"a/data.pkl", "b/data.pkl"}, FileKind::kUnknown, "a zip archive without NAME/data.pkl"},
      {{"data.pkl"}, FileKind::kUnknown, "a zip archive without NAME/data.pkl"},
      {{"a/b/data.pkl"}, FileKind::kUnknown, "a zip archive without NAME/data.pkl"},
      {{"a.npy", "b/c.npy"}, FileKind::kNpz, "an npz archive of NumPy"},
      {{"a.npy", "b"}, FileKind::kUnknown, "a zip archive with 2 files, first 'a.npy'"},
      {{"b"}, FileKind::kUnknown, "a zip archive with 'b'"},
      {{"config.json", "model.weights.h5"}, FileKind::kKerasArchive, "a Keras 3 archive"},
      {{"config.json"}, FileKind::kUnknown, "a zip archive with 'config.json'"},
      {{"model.weights.h5"}, FileKind::kUnknown, "a zip archive with 'model.weights.h5'"},
  };
  for (const auto& [names, kind, what] : cases) {
    const std::string bytes = zip_of(names);
    const FoundFile found = identify(MemorySource("m", bytes));
    EXPECT_EQ(found.kind, kind) << what;
    EXPECT_EQ(found.what, what);
  }
}

TEST(Identify, SafetensorsAndJson) {
  const auto kind_of = [](const std::string& bytes) {
    return identify(MemorySource("m", bytes)).kind;
  };
  const auto header = [](std::uint64_t length, const std::string& rest) {
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    return out + rest;
  };
  EXPECT_EQ(kind_of(header(2, "{}")), FileKind::kSafetensors) << "without any tensors";
  EXPECT_EQ(kind_of(header(3, "{}")), FileKind::kUnknown) << "longer than the file";
  EXPECT_EQ(kind_of(header(2, "{}x")), FileKind::kSafetensors);
  EXPECT_EQ(kind_of(header(1, "{")), FileKind::kUnknown);
  EXPECT_EQ(kind_of(header(2, "[]")), FileKind::kUnknown);
  EXPECT_EQ(kind_of(header(~std::uint64_t{7}, "{}")), FileKind::kUnknown);
  EXPECT_EQ(kind_of(" \t\r\n{\"weight_map\": 1}"), FileKind::kSafetensorsIndex);
  EXPECT_EQ(kind_of("[\"weight_map\"]"), FileKind::kUnknown);
  // Behind any amount of something else.
  const std::string far = "{\"metadata\": \"" + std::string(10000, 'x') + "\", \"weight_map\": 1}";
  EXPECT_EQ(kind_of(far), FileKind::kSafetensorsIndex);
  EXPECT_EQ(kind_of("{\"layers\": 1, \"in_shape\": 1}"), FileKind::kRtneural);
  EXPECT_EQ(kind_of("{\"architecture\": 1, \"weights\": 1}"), FileKind::kNam);
  EXPECT_EQ(identify(MemorySource("m", "{}")).what, "a JSON file");
  // One of two keys is of anybody's.
  for (const char* key : {"layers", "in_shape", "architecture", "weights"}) {
    EXPECT_EQ(kind_of(std::string("{\"") + key + "\": 1}"), FileKind::kUnknown) << key;
  }
}

// A file of each kind, what it is called, and whether it has checksums of its elements.
TEST(Identify, FilesOfEveryKind) {
  const std::tuple<const char*, FileKind, const char*, bool> files[] = {
      {"safetensors/good_package", FileKind::kSafetensors, "a safetensors file", false},
      {"torch_file/good_state_dict", FileKind::kTorch, "a PyTorch file", true},
      {"torch_file/good_without_checksums", FileKind::kTorch, "a PyTorch file", false},
      {"torch_file/good_script", FileKind::kTorchScript, "a TorchScript archive", true},
      {"torch_file/good_old_form", FileKind::kTorchLegacy, "a PyTorch file of the old form", false},
      {"onnx/good_lstm", FileKind::kOnnx, "an ONNX model", false},
      {"hdf5/good_legacy", FileKind::kKerasH5, "a Keras HDF5 file", false},
      {"hdf5/good_keras_3", FileKind::kKerasWeights, "a Keras 3 weights file", false},
      {"hdf5/good_types", FileKind::kHdf5, "an HDF5 file", false},
      {"keras_archive/good_archive", FileKind::kKerasArchive, "a Keras 3 archive", true},
      {"keras_archive/good_archive_deflated", FileKind::kKerasArchive, "a Keras 3 archive", false},
      {"tf_file/good_v1", FileKind::kTfCheckpointV1, "a TensorFlow checkpoint of version 1", false},
      {"tf_file/good_frozen", FileKind::kTfGraph, "a graph of TensorFlow", false},
      {"json_model/good_rtneural", FileKind::kRtneural, "a file of RTNeural", false},
      {"json_model/good_nam", FileKind::kNam, "a file of NeuralAmpModeler", false},
      {"npz/good_network", FileKind::kNpz, "an npz archive of NumPy", true},
  };
  for (const auto& [name, kind, what, has_checksums] : files) {
    const std::string path = source_file(std::string("fuzz/corpus/") + name);
    const FoundFile found = identify_file(path);
    EXPECT_EQ(found.kind, kind) << name;
    EXPECT_EQ(found.what, what) << name;
    const ModelFile file(path);
    EXPECT_EQ(file.kind(), kind) << name;
    EXPECT_EQ(file.path(), path);
    EXPECT_EQ(file.has_checksums(), has_checksums) << name;
  }
  const TempFolder folder;
  write_tensor_bundle(folder / "m", std::vector<NamedTensor>{{"x", array_of<float>({1}, {1})}});
  write_raw(folder / "i", "{\"weight_map\": {}}");
  EXPECT_EQ(identify_file(folder / "m").kind, FileKind::kTfCheckpoint);
  EXPECT_EQ(identify_file(folder / "m").what, "a TensorFlow checkpoint");
  EXPECT_TRUE(ModelFile(folder / "m").has_checksums());
  EXPECT_EQ(identify_file(folder / "i").what, "an index of safetensors files");
}

TEST(Identify, WhatIsSaidOfWhatIsNoModel) {
  const TempFolder folder;
  const std::string end =
      ", expected a model: a file of OpenRNN, safetensors, an index of several, one of PyTorch, "
      "ONNX, Keras, NumPy (npz), TensorFlow, RTNeural or NeuralAmpModeler, or a folder or prefix "
      "of TensorFlow";
  const std::pair<std::string, const char*> files[] = {{"\1\2\3\4", "of no known kind"},
                                                       {"words", "a text file"},
                                                       {"", "an empty file"},
                                                       {"{}", "a JSON file"}};
  for (const auto& [bytes, what] : files) {
    write_raw(folder / "m", bytes);
    EXPECT_EQ(thrown<FormatError>([&] { ModelFile(folder / "m"); }),
              "[" + folder / "m" + " @ 0] this is " + what + end);
  }
  EXPECT_EQ(thrown<FormatError>([&] { ModelFile{folder.path()}; }),
            "[" + folder.path() + " @ 0] this is a folder with 'm'" + end);
}

}  // namespace
}  // namespace openrnn::formats
