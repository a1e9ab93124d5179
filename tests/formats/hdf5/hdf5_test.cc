// HDF5 files, of Keras above all: what is read, what is refused and how it is said, what is
// written.

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include "../../../fuzz/entries/model_file.h"
#include "formats/hdf5/structure/lookup3.h"
#include "formats/temp_folder.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

std::string corpus_path(const std::string& name) {
  const bool is_archive = name.find("archive") != std::string::npos;
  return source_file((is_archive ? "fuzz/corpus/keras_archive/" : "fuzz/corpus/hdf5/") + name);
}

template <class T>
std::vector<T> elements(const ModelFile& file, const std::string& name) {
  const Array array = file.read(name);
  const auto values = array.as<T>();
  return {values.begin(), values.end()};
}

template <class T>
T value(const ModelFile& file, const std::string& name) {
  for (const NamedValue& one : file.values()) {
    if (one.name == name) return std::get<T>(one.value);
  }
  ADD_FAILURE() << "no value " << name;
  return {};
}

bool has_value(const ModelFile& file, const std::string& name) {
  const auto same = [&](const NamedValue& one) { return one.name == name; };
  return std::any_of(file.values().begin(), file.values().end(), same);
}

std::vector<std::string> names_of(const ModelFile& file) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : file.tensors()) names.push_back(tensor.name);
  return names;
}

using Texts = std::vector<std::string>;

TEST(Hdf5, Checksum) {
  EXPECT_EQ(lookup3(""), 0xdeadbeefu);
  EXPECT_EQ(lookup3("Four score and seven years ago"), 0x17770551u);
}

TEST(Hdf5, AModelOfKeras2) {
  for (const char* name : {"good_legacy", "good_ordered"}) {
    const ModelFile file(corpus_path(name));
    EXPECT_EQ(file.kind(), FileKind::kKerasH5);
    EXPECT_EQ(identify_file(file.path()).what, "a Keras HDF5 file");
    EXPECT_EQ(value<std::string>(file, "keras_version"), "2.2.4");
    EXPECT_EQ(value<std::string>(file, "model_weights/keras_version"), "2.2.4");
    EXPECT_TRUE(value<std::string>(file, "model_config").starts_with("{\"class_name\""));
    EXPECT_EQ(value<Texts>(file, "model_weights/layer_names"), (Texts{"dropout_1", "lstm_1"}));
    EXPECT_EQ(value<std::vector<double>>(file, "model_weights/dropout_1/weight_names").size(), 0u);
    const Texts weights = value<Texts>(file, "model_weights/lstm_1/weight_names");
    EXPECT_EQ(weights, (Texts{"lstm_1/kernel:0", "lstm_1/recurrent_kernel:0", "lstm_1/bias:0"}));
    EXPECT_EQ(file.tensors().size(), 3u);
    const std::string kernel = "model_weights/lstm_1/" + weights[0];
    EXPECT_EQ(file.info(kernel).shape, (Shape{3, 8}));
    // NumPy's first number of seed 1.
    EXPECT_FLOAT_EQ(elements<float>(file, kernel)[0], 0.345584192f);
    EXPECT_FALSE(file.has_checksums());
  }
}

TEST(Hdf5, WeightsOfKeras3) {
  const char* const kinds[] = {"a Keras 3 weights file", "a Keras 3 archive", "a Keras 3 archive"};
  int i = 0;
  for (const char* name : {"good_keras_3", "good_archive", "good_archive_deflated"}) {
    const ModelFile file(corpus_path(name));
    EXPECT_EQ(identify_file(file.path()).what, kinds[i]);
    EXPECT_EQ(file.kind(), i == 0 ? FileKind::kKerasWeights : FileKind::kKerasArchive);
    const std::string vars = "layers/gru/cell/vars/";
    EXPECT_EQ(names_of(file), (Texts{vars + "0", vars + "1", vars + "2", vars + "3"}));
    EXPECT_EQ(value<std::string>(file, "vars/name"), "sequential");
    EXPECT_EQ(value<std::string>(file, "layers/gru/cell/vars/name"), "gru_cell");
    EXPECT_EQ(elements<float>(file, vars + "1")[26], 26.0f);
    EXPECT_EQ(file.info(vars + "3").dtype, "bfloat16");
    EXPECT_EQ(file.read_bytes(vars + "3"), std::string("\x80\x3f\x20\xc0", 4));
    EXPECT_EQ(has_value(file, "config.json"), i > 0);
    if (i++ > 0) {
      EXPECT_EQ(value<std::string>(file, "config.json"), "{\"class_name\": \"Sequential\"}");
    }
  }
}

// A float32 of each version of a type's head; HDF5 has 1 to 5.
TEST(Hdf5, VersionsOfAType) {
  const std::string whole = read_file(corpus_path("good_legacy")),
                    float32("\x11\x20\x1f\0\4\0\0\0", 8);
  const std::string kernel = "model_weights/lstm_1/lstm_1/kernel:0";
  const std::vector<float> expected =
      elements<float>(ModelFile(corpus_path("good_legacy")), kernel);
  const TempFolder folder;
  for (const int version : {0, 1, 2, 3, 4, 5, 6}) {
    std::string changed = whole;
    int places = 0;
    for (std::size_t at = 0; (at = changed.find(float32, at)) != std::string::npos; ++places) {
      changed[at] = static_cast<char>(version << 4 | 1);
      at += version == 1 ? float32.size() : 1;
    }
    ASSERT_GT(places, 0);
    write_raw(folder / "m", changed);
    if (version >= 1 && version <= 5) {
      EXPECT_EQ(elements<float>(ModelFile(folder / "m"), kernel), expected) << version;
    } else {
      const std::string said = "has version " + std::to_string(version) + ", expected 1 to 5";
      EXPECT_MESSAGE(FormatError, ModelFile(folder / "m"), said);
    }
  }
}

TEST(Hdf5, TheChecksumOfAnArchive) {
  std::string whole = read_file(corpus_path("good_archive"));
  const float last = 26;  // of the second tensor
  const std::size_t at = whole.find(std::string(reinterpret_cast<const char*>(&last), 4));
  whole[at] = 1;
  const TempFolder folder;
  write_raw(folder / "m", whole);
  const ModelFile file(folder / "m");
  EXPECT_TRUE(file.has_checksums());
  EXPECT_MESSAGE(FormatError, file.read("layers/gru/cell/vars/0"), "have checksum");
  EXPECT_MESSAGE(FormatError, file.verify(), "have checksum");
  const ModelFile right(corpus_path("good_archive"));
  right.verify();
  EXPECT_EQ(elements<float>(right, "layers/gru/cell/vars/1")[26], last);
}

TEST(Hdf5, ElementTypes) {
  for (const char* name : {"good_types", "good_types_latest"}) {
    const ModelFile file(corpus_path(name));
    EXPECT_EQ(file.kind(), FileKind::kHdf5);
    EXPECT_EQ(elements<double>(file, "data/f8"), (std::vector<double>{1, 0}));
    EXPECT_EQ(elements<std::int64_t>(file, "data/i8"), (std::vector<std::int64_t>{1, 0}));
    EXPECT_EQ(elements<std::uint8_t>(file, "data/u1"), (std::vector<std::uint8_t>{1, 0}));
    EXPECT_EQ(elements<bool>(file, "data/bool"), (std::vector<bool>{true, false}));
    EXPECT_EQ(elements<float>(file, "scalar"), std::vector<float>{3});
    EXPECT_EQ(file.info("scalar").shape, Shape{});
    EXPECT_EQ(file.read("empty").shape(), (Shape{0, 3}));
    EXPECT_EQ(file.info("data/u8").dtype, "uint64");
    EXPECT_EQ(file.info("data/S3").dtype, "string");
    EXPECT_EQ(file.info("data/c8").dtype, "a compound type");
    EXPECT_MESSAGE(UnsupportedError, file.read("data/big_f4"),
                   "has element type big-endian float32");
    EXPECT_EQ(file.read_bytes("data/big_i4"), std::string("\0\0\0\1\0\0\0\0", 8));
    EXPECT_MESSAGE(UnsupportedError, file.read("nothing"),
                   "the dataset 'nothing' has no elements stored, expected it stored whole");
    EXPECT_EQ(value<std::int64_t>(file, "int"), -7);
    EXPECT_EQ(value<std::int64_t>(file, "unsigned"), 200);
    EXPECT_EQ(value<double>(file, "half"), 0.5);
    EXPECT_EQ(value<double>(file, "float"), 0.25);
    EXPECT_EQ(value<bool>(file, "yes"), true);
    EXPECT_EQ(value<std::vector<std::int64_t>>(file, "ints"), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(value<std::vector<double>>(file, "floats"), (std::vector<double>{0.5, 1.5}));
    EXPECT_EQ(value<Texts>(file, "texts"), (Texts{"ab", "c", ""}));
    EXPECT_EQ(value<std::string>(file, "spaces"), "");
    value<std::monostate>(file, "none");
    EXPECT_FALSE(has_value(file, "record"));
  }
}

TEST(Hdf5, Chunks) {
  std::vector<float> all(15 * 7);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  for (const char* name : {"good_chunked", "good_latest", "good_superblock_2"}) {
    const ModelFile file(corpus_path(name));
    EXPECT_EQ(elements<float>(file, "gzip"), all) << name;
    EXPECT_EQ(elements<double>(file, "shuffle"), std::vector<double>(all.begin(), all.end()));
    EXPECT_EQ(elements<float>(file, "plain"), std::vector<float>(all.begin(), all.begin() + 7));
    const std::optional<ConstArrayView> view = file.view("gzip");
    ASSERT_TRUE(view);
    EXPECT_EQ(static_cast<const float*>(view->data)[104], 104.0f);
    EXPECT_MESSAGE(UnsupportedError, file.read("lzf"), "is stored with filter 32000");
    EXPECT_MESSAGE(UnsupportedError, file.read("part"), "has 1 of 2 chunks stored");
    if (!file.contains("early")) continue;
    EXPECT_EQ(elements<float>(file, "early"), std::vector<float>(all.begin(), all.begin() + 15));
    // Links and attributes of an object that has many are in heaps.
    EXPECT_EQ(value<std::string>(file, "many/a39"), "value 39");
  }
}

TEST(Hdf5, AnyFileIsWrittenAgain) {
  const TempFolder folder;
  for (const char* name : {"good_legacy", "good_keras_3", "good_many", "good_archive"}) {
    const ModelFile file(corpus_path(name));
    std::vector<Array> arrays;
    for (const TensorInfo& tensor : file.tensors()) arrays.push_back(file.read(tensor.name));
    std::vector<NamedView> views;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      views.push_back({file.tensors()[i].name, arrays[i].view()});
    }
    if (file.kind() == FileKind::kKerasArchive) {
      write_keras_archive(folder / "m", views, file.values());
    } else {
      write_hdf5(folder / "m", views, file.values());
    }
    const ModelFile again(folder / "m");
    EXPECT_EQ(again.kind(), file.kind());
    Texts sorted = names_of(file);
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(names_of(again), sorted) << name;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const std::string& tensor = file.tensors()[i].name;
      EXPECT_EQ(again.info(tensor).shape, file.info(tensor).shape);
      EXPECT_EQ(again.info(tensor).dtype, file.info(tensor).dtype);
      EXPECT_EQ(again.read_bytes(tensor), file.read_bytes(tensor));
    }
    EXPECT_EQ(again.values().size(), file.values().size());
    for (const NamedValue& one : file.values()) {
      const auto same = [&](const NamedValue& other) {
        return other.name == one.name && other.value == one.value;
      };
      EXPECT_TRUE(std::any_of(again.values().begin(), again.values().end(), same)) << one.name;
    }
  }
}

TEST(Hdf5, WhatCannotBeWritten) {
  const TempFolder folder;
  const Array one(DType::kFloat32, {1});
  const auto write = [&](const std::vector<NamedView>& tensors,
                         const std::vector<NamedValue>& values = {}) {
    write_hdf5(folder / "m", tensors, values);
  };
  const std::vector<NamedView> under{{"a", one.view()}, {"a/b", one.view()}};
  const std::vector<NamedView> over{{"a/b", one.view()}, {"a", one.view()}};
  EXPECT_MESSAGE(ArgumentError, write(under), "[write_hdf5] 'a/b' goes through a dataset");
  EXPECT_MESSAGE(ArgumentError, write(over), "'a' is a group, too");
  for (const char* name : {"/a", "a/", "a//b", "./a", ""}) {
    EXPECT_THROW(write({{name, one.view()}}), ArgumentError) << name;
  }
  const std::vector<NamedValue> twice{{"g/x", std::int64_t{1}}, {"g/x", std::int64_t{2}}};
  const std::vector<NamedValue> large{{"x", Texts(2, std::string(40000, 'x'))}};
  EXPECT_MESSAGE(ArgumentError, write({}, twice), "or there twice");
  EXPECT_MESSAGE(ArgumentError, write({}, large), "'x' is an attribute of more than 64 KB");
  EXPECT_MESSAGE(ArgumentError, write_keras_archive(folder / "m", {}, {}),
                 "there is no text 'config.json'");
  EXPECT_TRUE(folder.names().empty());
  // A single string may be as long as it is.
  write({}, {{"config", std::string(100000, 'x')}, {"g/empty", std::string()}});
  EXPECT_EQ(value<std::string>(ModelFile(folder / "m"), "config").size(), 100000u);
  EXPECT_EQ(value<std::string>(ModelFile(folder / "m"), "g/empty"), "");
}

TEST(Hdf5, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"bad_cut", "bad_cut @ 1423] the file ends at byte 1423, expected 1424 bytes"},
      {"bad_superblock_9", "@ 8] the superblock has version 9, expected at most 3"},
      {"bad_offsets_of_4", "offsets and lengths have 4 and 8 bytes, expected 8 of each"},
      {"bad_checksum", "@ 0] the superblock has checksum"},
      {"bad_header_checksum", "an object header has checksum"},
      {"bad_soft_link", "'b' is a link to a name"},
      {"bad_soft_link_latest", "'b' is a link to a name"},
      {"bad_external_link", "'b' is a link to a name"},
      {"bad_linked_twice", "some of which are used already, expected each once"},
      {"bad_cycle", "some of which are used already, expected each once"},
      {"bad_cycle_latest", "some of which are used already, expected each once"},
      {"bad_data_in_heap", "a dataset has 24 bytes, some of which are used already"},
      {"bad_data_outside", "a dataset has 24 bytes at 1416, expected it inside the file of 1424"},
      {"bad_data_size", "has 20 bytes, expected 24 of shape [6]"},
      {"bad_rank", "a dataspace has rank 200, expected at most 32"},
      {"bad_element_of_0", "has elements of 0 bytes"},
      {"bad_gzip_stream", "is no zlib stream of 16000 bytes"},
      {"bad_archive_bomb", "'model.weights.h5' has 4194304 bytes in an archive of 4312"},
      {"bad_archive_stream", "'model.weights.h5' "},
  };
  for (const auto& [name, text] : cases) {
    SCOPED_TRACE(name);
    const std::string path = corpus_path(name);
    const auto read_all = [&] {
      const ModelFile file(path);
      for (const TensorInfo& tensor : file.tensors()) file.read(tensor.name);
    };
    EXPECT_MESSAGE(Error, read_all(), text);
  }
}

TEST(Hdf5, EveryTruncationIsRefused) {
  for (const char* name : {"bad_cut", "good_archive_deflated", "good_legacy"}) {
    const std::string whole = read_file(corpus_path(name));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(read_model_file(std::string_view(whole).substr(0, size))) << name << " " << size;
    }
  }
}

TEST(Hdf5, AnyChangedByteDoesNoHarm) {
  int refused = 0;
  // Decompressing takes its time.
  const std::pair<const char*, std::size_t> cases[] = {
      {"good_legacy", 1}, {"good_types_latest", 1}, {"good_chunked", 37}};
  for (const auto& [name, step] : cases) {
    const std::string whole = read_file(corpus_path(name));
    for (std::size_t at = 0; at < whole.size(); at += step) {
      for (const int change : {0x01, 0xff}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ change);
        refused += !read_model_file(changed);
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace openrnn::formats
