// Files of PyTorch: what is read, what is refused and how it is said, what is written.

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include <cstring>

#include "../../../fuzz/entries/model_file.h"
#include "formats/temp_folder.h"
#include "formats/torch/objects_writer.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

std::string corpus_path(const std::string& name) {
  return source_file("fuzz/corpus/torch_file/" + name);
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

std::vector<std::string> names_of(const ModelFile& file) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : file.tensors()) names.push_back(tensor.name);
  return names;
}

const std::vector<std::string> kGru{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"};

TEST(Torch, EveryFormOfAStateDict) {
  const ModelFile zip(corpus_path("good_state_dict")), old(corpus_path("good_old_form")),
      unchecked(corpus_path("good_without_checksums"));
  EXPECT_EQ(zip.kind(), FileKind::kTorch);
  EXPECT_EQ(old.kind(), FileKind::kTorchLegacy);
  EXPECT_TRUE(zip.has_checksums());
  EXPECT_FALSE(old.has_checksums());
  EXPECT_FALSE(unchecked.has_checksums());
  EXPECT_EQ(identify_file(old.path()).what, "a PyTorch file of the old form");
  for (const ModelFile* file : {&zip, &old, &unchecked}) {
    EXPECT_EQ(names_of(*file), kGru);
    EXPECT_EQ(file->info("weight_ih_l0").shape, (Shape{9, 2}));
    EXPECT_EQ(elements<float>(*file, "weight_hh_l0"), elements<float>(zip, "weight_hh_l0"));
    file->verify();
  }
  // PyTorch's first numbers of seed 0, scaled to +-1/sqrt(3).
  EXPECT_NEAR(elements<float>(zip, "weight_ih_l0")[0], -0.00433, 1e-5);
}

TEST(Torch, TheTensorsOfACheckpoint) {
  const ModelFile file(corpus_path("good_checkpoint"));
  std::vector<double> base(24), transposed, slice;
  for (int i = 0; i < 24; ++i) base[static_cast<std::size_t>(i)] = i;
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) transposed.push_back(12 * i + 4 * j + k);
    }
  }
  for (int j = 0; j < 3; ++j) {
    for (int k = 0; k < 4; k += 2) slice.push_back(12 + 4 * j + k);
  }
  EXPECT_EQ(elements<double>(file, "tensors.base"), base);
  EXPECT_EQ(elements<double>(file, "tensors.tied"), base);
  EXPECT_EQ(file.info("tensors.transposed").shape, (Shape{4, 2, 3}));
  EXPECT_EQ(elements<double>(file, "tensors.transposed"), transposed);
  EXPECT_EQ(file.info("tensors.slice").shape, (Shape{3, 2}));
  EXPECT_EQ(elements<double>(file, "tensors.slice"), slice);
  EXPECT_FALSE(file.view("tensors.slice"));
  EXPECT_EQ(file.view("tensors.base")->data, file.view("tensors.tied")->data);
  EXPECT_EQ(elements<std::int64_t>(file, "tensors.scalar"), std::vector<std::int64_t>{7});
  EXPECT_EQ(file.read("tensors.empty").shape(), (Shape{0, 3}));
  EXPECT_EQ(file.info("tensors.brain").dtype, "bfloat16");
  EXPECT_EQ(file.read_bytes("tensors.brain"), std::string("\xc0\x3f\0\xc0", 4));
  EXPECT_EQ(file.read_bytes("tensors.unsigned"), std::string("\1\0\2\0", 4));
  EXPECT_MESSAGE(UnsupportedError, file.read("tensors.unsigned"), "has element type uint16");
  EXPECT_EQ(elements<bool>(file, "tensors.mask"), (std::vector<bool>{true, false}));
  EXPECT_EQ(elements<float>(file, "tensors.parameter"), (std::vector<float>{1, 1}));
  EXPECT_MESSAGE(UnsupportedError, file.read("tensors.expanded"),
                 "'tensors.expanded' of 8 bytes repeats elements of a storage of 4 bytes");
  EXPECT_EQ(file.info("optimizer.state.0.exp_avg").shape, (Shape{8, 3}));
  EXPECT_EQ(elements<float>(file, "several.2.k"), std::vector<float>{1});
}

TEST(Torch, TheValuesOfACheckpoint) {
  for (const char* name : {"good_checkpoint", "good_old_checkpoint"}) {
    const ModelFile file(corpus_path(name));
    EXPECT_EQ(value<std::int64_t>(file, "epoch"), 3);
    EXPECT_EQ(value<double>(file, "loss"), 0.5);
    EXPECT_EQ(value<std::string>(file, "name"), "LSTM \xc3\xa4");
    EXPECT_EQ(value<bool>(file, "done"), false);
    value<std::monostate>(file, "none");
    EXPECT_EQ(value<std::string>(file, "seed"), "0x00ffffffffffffffff");
    EXPECT_EQ(value<std::vector<std::int64_t>>(file, "size"), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(value<std::vector<double>>(file, "mixed"), (std::vector<double>{1, 2.5}));
    EXPECT_EQ(value<std::vector<std::string>>(file, "words"), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(value<std::int64_t>(file, "several.0"), 1);
    EXPECT_EQ(value<std::string>(file, "5"), "five");
    EXPECT_EQ(value<double>(file, "optimizer.param_groups.0.lr"), 0.25);
    EXPECT_EQ(value<std::vector<std::int64_t>>(file, "optimizer.param_groups.0.params"),
              (std::vector<std::int64_t>{0, 1, 2, 3}));
  }
}

TEST(Torch, OtherForms) {
  EXPECT_EQ(elements<float>(ModelFile(corpus_path("good_tensor_alone")), "tensor"),
            (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(elements<float>(ModelFile(corpus_path("good_old_view")), "a"),
            (std::vector<float>{2, 3}));
  EXPECT_EQ(elements<float>(ModelFile(corpus_path("good_pairs")), "a"), std::vector<float>{1});
  for (const char* name : {"good_protocol_4", "good_protocol_5"}) {
    const ModelFile file(corpus_path(name));
    EXPECT_EQ(elements<float>(file, "a"), (std::vector<float>{1, 1}));
    EXPECT_EQ(value<std::string>(file, "bytes"), std::string("\0\xff", 2));
  }
  const ModelFile script(corpus_path("good_script")), traced(corpus_path("good_traced"));
  EXPECT_EQ(script.kind(), FileKind::kTorchScript);
  EXPECT_EQ(names_of(script), (std::vector<std::string>{"linear.weight", "linear.bias"}));
  EXPECT_EQ(value<std::vector<std::int64_t>>(script, "sizes"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(elements<float>(traced, "CONSTANTS.0"), std::vector<float>{0.5f});
}

TEST(Torch, AFileThatAsksForAllMemory) {
  const ModelFile file(corpus_path("good_many_elements"));
  EXPECT_EQ(file.info("a").shape, (Shape{std::int64_t{1} << 40}));
  EXPECT_MESSAGE(UnsupportedError, file.read("a"), "repeats elements of a storage of 4 bytes");
  EXPECT_MESSAGE(UnsupportedError, file.read_bytes("a"), "repeats elements");
}

TEST(Torch, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"bad_os_system", "bad_os_system @ 42] the pickle names os.system, expected only names of"},
      {"bad_module", "the pickle names torch.nn.modules.rnn.LSTM, expected only"},
      {"bad_opcode", "the pickle has opcode 0x49, expected one that tensors"},
      {"bad_cycle", "contain themselves"},
      {"bad_laughs", "make up too many"},
      {"bad_pairs", "the pickle has more items than bytes"},
      {"bad_no_storage", "a tensor is in 'm/data/7', expected an entry of that name"},
      {"bad_outside", "begins at element 1, expected it inside its storage of 1"},
      {"bad_same_names", "two values are named 'a.b', expected one"},
      {"bad_entry_size", "'m/data.pkl' has 2147483647 bytes, expected it to end inside the file"},
      {"bad_overlap", ", where the next begins"},
      {"bad_same_entries", "'m/data/0' is there twice, expected once"},
      {"bad_no_directory", "the zip archive has no end record, expected one"},
      {"bad_no_pickle", "this is a zip archive with"},
      {"bad_old_elements", "storage 'k' has 4611686018427387904 elements of 4 bytes"},
  };
  for (const auto& one : cases) {
    EXPECT_MESSAGE(FormatError, ModelFile{corpus_path(one.first)}, one.second);
  }
  EXPECT_MESSAGE(UnsupportedError, ModelFile{corpus_path("bad_big_endian")}, "byteorder is 'big'");
  EXPECT_MESSAGE(UnsupportedError, ModelFile{corpus_path("bad_deflated")}, "is compressed");
  const ModelFile flipped(corpus_path("bad_checksum"));
  EXPECT_MESSAGE(FormatError, flipped.read("a"), "4 bytes of tensors have checksum 3048889131");
  EXPECT_MESSAGE(FormatError, flipped.verify(), "expected 2896259690");
  EXPECT_MESSAGE(FormatError, ModelFile{corpus_path("bad_bool")}.read("a"), "expected 0 or 1");
}

// A zip archive that is cut has no directory; a file of the old form ends with its storages.
TEST(Torch, EveryTruncationIsRefused) {
  for (const char* name : {"good_state_dict", "good_old_form", "good_old_view", "good_traced"}) {
    const std::string whole = read_file(corpus_path(name));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(read_model_file(whole.substr(0, size))) << name << " of " << size;
    }
  }
}

TEST(Torch, AnyChangedByteDoesNoHarm) {
  int refused = 0;
  for (const char* name : {"good_state_dict", "good_old_checkpoint", "good_protocol_4",
                           "good_script", "good_without_checksums"}) {
    const std::string whole = read_file(corpus_path(name));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int change : {0x01, 0xff}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ change);
        refused += !read_model_file(changed);
      }
    }
  }
  EXPECT_GT(refused, 3000);
}

TEST(Torch, APickleWithoutItsChecksum) {
  int refused = 0;
  for (const char* name : {"good_checkpoint", "good_protocol_4", "good_script", "good_pairs"}) {
    const std::string whole = read_file(source_file(std::string("fuzz/corpus/pickle/") + name));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      EXPECT_FALSE(fuzz_pickle(whole.substr(0, at))) << name << " of " << at;
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ change);
        refused += !fuzz_pickle(changed);
      }
    }
  }
  EXPECT_GT(refused, 3000);
}

TEST(Torch, WhatIsWrittenIsRead) {
  const TempFolder folder;
  const Array scalar = array_of<std::int64_t>({}, {-5}), empty = Array(DType::kFloat16, {3, 0}),
              matrix = array_of<float>({3, 5}, std::vector<float>(15, 0.5f)),
              odd = array_of<std::uint8_t>({7}, {9, 8, 7, 6, 5, 4, 3});
  Array mask(DType::kBool, {3});
  mask.as<bool>()[1] = true;
  const std::vector<NamedView> named{{"rnn.s\xc3\xa4", scalar.view()},
                                     {"e", empty.view()},
                                     {"o", odd.view()},
                                     {"m", matrix.view()},
                                     {"b", mask.view()}};
  write_torch_state_dict(folder / "m.pt", named);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m.pt"});
  const ModelFile file(folder / "m.pt");
  EXPECT_EQ(file.kind(), FileKind::kTorch);
  EXPECT_TRUE(file.has_checksums());
  EXPECT_TRUE(file.values().empty());
  ASSERT_EQ(file.tensors().size(), named.size());
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(file.tensors()[i].name, named[i].name);
    const Array back = file.read(named[i].name);
    EXPECT_EQ(back.dtype(), named[i].values.dtype);
    EXPECT_EQ(back.shape(), named[i].values.shape);
    EXPECT_EQ(0, std::memcmp(back.data(), named[i].values.data, back.size_bytes()));
    const std::optional<ConstArrayView> view = file.view(named[i].name);
    ASSERT_TRUE(view) << named[i].name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view->data) % 64, 0u);
  }
  EXPECT_MESSAGE(ArgumentError,
                 write_torch_state_dict(folder / "n", std::vector<NamedView>{{"", odd.view()}}),
                 "[write_torch_state_dict] the name '' is empty");
}

// One of each kind of value, in each kind of collection.
TorchObject some_of_everything(const Array& matrix) {
  using Kind = TorchObject::Kind;
  TorchObject root{.kind = Kind::kDict}, state{.kind = Kind::kOrdered},
      numbered{.kind = Kind::kNumbered}, list{.kind = Kind::kList};
  state.add("w", TorchObject::of_tensor(matrix.view()));
  state.add("none", TorchObject::of(std::monostate{}));
  numbered.add("7", TorchObject::of(true));
  numbered.add("12", TorchObject::of(false));
  list.add("", TorchObject::of(std::int64_t{-3}));
  list.add("", TorchObject::of_tensor(matrix.view()));
  root.add("state", std::move(state));
  root.add("numbered", std::move(numbered));
  root.add("list", std::move(list));
  root.add("float", TorchObject::of(0.1));
  root.add("text", TorchObject::of("s\xc3\xa4"));
  root.add("bytes", TorchObject::of("\x00\xff\x80z"s));
  root.add("longs", TorchObject::of(std::vector<std::int64_t>{INT64_MIN, 2}));
  root.add("floats", TorchObject::of(std::vector<double>{1.5, -0.25}));
  root.add("texts", TorchObject::of(std::vector<std::string>{"a", ""}));
  return root;
}

TEST(Torch, EveryKindOfObjectIsWritten) {
  const TempFolder folder;
  const Array matrix = array_of<float>({2, 2}, {1, 2, 3, 4});
  write_torch_objects("call", folder / "m.pt", some_of_everything(matrix));
  const ModelFile file(folder / "m.pt");
  EXPECT_EQ(names_of(file), (std::vector<std::string>{"state.w", "list.1"}));
  EXPECT_EQ(elements<float>(file, "state.w"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(elements<float>(file, "list.1"), (std::vector<float>{1, 2, 3, 4}));
  std::vector<std::string> names;
  for (const NamedValue& one : file.values()) names.push_back(one.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"state.none", "numbered.7", "numbered.12", "list.0", "float",
                                      "text", "bytes", "longs", "floats", "texts"}));
  value<std::monostate>(file, "state.none");
  EXPECT_TRUE(value<bool>(file, "numbered.7"));
  EXPECT_FALSE(value<bool>(file, "numbered.12"));
  EXPECT_EQ(value<std::int64_t>(file, "list.0"), -3);
  EXPECT_EQ(value<double>(file, "float"), 0.1);
  EXPECT_EQ(value<std::string>(file, "text"), "s\xc3\xa4");
  EXPECT_NE(read_file(folder / "m.pt")
                .find("c_codecs\nencode\n(X\6\0\0\0\0\xc3\xbf\xc2\x80zX\6\0\0\0latin1tR"s),
            std::string::npos);
  // Bytes are read as the text of Latin-1 that stands for them.
  EXPECT_EQ(value<std::string>(file, "bytes"), "\x00\xc3\xbf\xc2\x80z"s);
  EXPECT_EQ(value<std::vector<std::int64_t>>(file, "longs"),
            (std::vector<std::int64_t>{INT64_MIN, 2}));
  EXPECT_EQ(value<std::vector<double>>(file, "floats"), (std::vector<double>{1.5, -0.25}));
  EXPECT_EQ(value<std::vector<std::string>>(file, "texts"), (std::vector<std::string>{"a", ""}));
}

}  // namespace
}  // namespace openrnn::formats
