// Tensors and values of a pickle: what each argument of a tensor must be, names, and the old form.
#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include "formats/model_file/pickle_text.h"
#include "formats/temp_folder.h"
#include "formats/torch/objects.h"
#include "formats/zip/zip_writer.h"

namespace openrnn::formats {
namespace {

using namespace pickle_text;

TorchObjects objects_of(const std::string& bytes, const std::string& prefix = "") {
  const std::optional<Pickle> pickle = parse_pickle("m", 1000, bytes);
  if (!pickle) throw FormatError("m", 0, "cut");
  return torch_objects(*pickle, prefix);
}

struct TensorText {
  std::string storage_class = name("torch", "FloatStorage");
  std::string key = text("k"), elements = integer(8), part = "N";
  std::string first = integer(2), shape = tuple({integer(2), integer(3)});
  std::string strides = tuple({integer(3), integer(1)});
  std::string tag = text("storage");

  std::string storage() const {
    return persistent(tuple({tag, storage_class, key, text("cpu"), elements, part}));
  }
  std::string v2() const {
    return call(name("torch._utils", "_rebuild_tensor_v2"),
                {storage(), first, shape, strides, "\x89", "}"});
  }
  std::string v2(const std::string& metadata) const {
    return call(name("torch._utils", "_rebuild_tensor_v2"),
                {storage(), first, shape, strides, "\x89", "}", metadata});
  }
  std::string v3(const std::string& dtype, const std::string& metadata = "N") const {
    return call(name("torch._utils", "_rebuild_tensor_v3"),
                {storage(), first, shape, strides, "\x89", "}", dtype, metadata});
  }
};

TorchTensor tensor_of(const std::string& pickled) {
  TorchObjects objects = objects_of(whole(pickled));
  EXPECT_EQ(objects.tensors.size(), 1u);
  return objects.tensors.at(0);
}

TEST(TorchTensors, WhatACallSays) {
  const TensorText text_of;
  for (const std::string& pickled : {text_of.v2(), text_of.v2("N"), text_of.v2("}")}) {
    const TorchTensor tensor = tensor_of(pickled);
    EXPECT_EQ(tensor.info.name, "tensor");
    EXPECT_EQ(tensor.info.dtype, "float32");
    EXPECT_EQ(tensor.info.shape, (Shape{2, 3}));
    EXPECT_EQ(tensor.info.bytes, 24u);
    EXPECT_EQ(tensor.element_bytes, 4);
    EXPECT_EQ(tensor.first, 8u);
    EXPECT_TRUE(tensor.strides.empty());
    EXPECT_EQ(tensor.storage.bytes, 32u);
    EXPECT_EQ(tensor.storage.before, 0u);
  }
  TensorText transposed = text_of;
  transposed.strides = tuple({integer(1), integer(2)});
  EXPECT_EQ(tensor_of(transposed.v2()).strides, (Shape{1, 2}));
  // A size of 1 takes no step.
  TensorText one = text_of;
  one.shape = tuple({integer(1), integer(3)});
  one.strides = tuple({integer(77), integer(1)});
  EXPECT_TRUE(tensor_of(one.v2()).strides.empty());
  TensorText repeated = text_of;
  repeated.strides = tuple({integer(0), integer(1)});
  EXPECT_EQ(tensor_of(repeated.v2()).strides, (Shape{0, 1}));
  // Nothing is read of a tensor without elements, wherever it begins.
  TensorText empty = text_of;
  empty.shape = tuple({integer(0), integer(3)});
  empty.first = integer(100);
  EXPECT_EQ(tensor_of(empty.v2()).info.bytes, 0u);
  EXPECT_EQ(tensor_of(empty.v2()).first, 0u);
  EXPECT_TRUE(tensor_of(empty.v2()).strides.empty());
}

TEST(TorchTensors, TheLastElementIsInsideItsStorage) {
  TensorText at_end;
  at_end.strides = tuple({integer(4), integer(1)});
  at_end.first = integer(1);
  EXPECT_EQ(tensor_of(at_end.v2()).strides, (Shape{4, 1}));
  at_end.first = integer(2);
  EXPECT_MESSAGE(FormatError, tensor_of(at_end.v2()),
                 "a tensor of shape [2, 3] and strides [4, 1] begins at element 2, expected it "
                 "inside its storage of 8");
  TensorText overflow;
  overflow.strides = tuple({integer(INT64_MAX), integer(INT64_MAX)});
  EXPECT_MESSAGE(FormatError, tensor_of(overflow.v2()), "expected it inside its storage of 8");
}

TEST(TorchTensors, OfADtype) {
  TensorText untyped;
  untyped.storage_class = name("torch.storage", "UntypedStorage");
  untyped.elements = integer(16);
  untyped.first = integer(2);
  const TorchTensor tensor = tensor_of(untyped.v3(name("torch", "uint16")));
  EXPECT_EQ(tensor.info.dtype, "uint16");
  EXPECT_EQ(tensor.element_bytes, 2);
  EXPECT_EQ(tensor.first, 4u);
  EXPECT_EQ(tensor.storage.bytes, 16u);
  EXPECT_EQ(tensor.storage.element_bytes, 1);
  untyped.first = integer(3);
  EXPECT_MESSAGE(FormatError, tensor_of(untyped.v3(name("torch", "uint16"))),
                 "begins at element 3, expected it inside its storage of 8");
  EXPECT_EQ(tensor_of(TensorText{.first = integer(0)}.v3(name("torch", "float32"), "}")).first, 0u);
  EXPECT_MESSAGE(FormatError, tensor_of(TensorText().v3(name("torch", "Size"))),
                 "a tensor has no dtype, expected one");
  EXPECT_MESSAGE(FormatError, tensor_of(TensorText().v3("N")),
                 "a tensor has no dtype as argument 6, expected one");
}

TEST(TorchTensors, OfAPartOfAStorage) {
  TensorText part;
  part.elements = integer(100);
  part.part = tuple({text("k"), integer(5), integer(8)});
  const TorchTensor tensor = tensor_of(part.v2());
  EXPECT_EQ(tensor.storage.before, 20u);
  EXPECT_EQ(tensor.storage.bytes, 32u);
  part.part = tuple({text("k"), integer(5), integer(7)});
  EXPECT_MESSAGE(FormatError, tensor_of(part.v2()), "inside its storage of 7");
  part.part = tuple({text("k"), integer(5)});
  EXPECT_MESSAGE(FormatError, tensor_of(part.v2()), "a tensor has no elements as argument 2");
  part.part = tuple({text("k")});
  EXPECT_MESSAGE(FormatError, tensor_of(part.v2()), "a tensor has no first element as argument 1");
}

TEST(TorchTensors, RankAndParameters) {
  const auto of_rank = [](int rank) {
    std::string ones = "(";
    for (int d = 0; d < rank; ++d) ones += "K\1";
    return TensorText{.shape = ones + "t", .strides = ones + "t"}.v2();
  };
  EXPECT_EQ(tensor_of(of_rank(64)).info.shape.size(), 64u);
  EXPECT_MESSAGE(FormatError, tensor_of(of_rank(65)), "a tensor has more than 64 dimensions");
  std::string parameter = TensorText().v2();
  for (int depth = 1; depth <= 9; ++depth) {
    const char* const kind = depth % 2 ? "_rebuild_parameter" : "_rebuild_parameter_with_state";
    parameter = call(name("torch._utils", kind), {parameter, "\x88", "}"});
    if (depth <= 8) {
      EXPECT_EQ(tensor_of(parameter).first, 8u);
    } else {
      EXPECT_MESSAGE(FormatError, tensor_of(parameter), "a parameter is made of itself");
    }
  }
}

TEST(TorchTensors, Errors) {
  const std::string v2 = name("torch._utils", "_rebuild_tensor_v2");
  const TensorText good;
  const std::pair<std::string, std::string> cases[] = {
      {call(v2, {}), "a tensor has no storage as argument 0, expected one"},
      {call(v2, {"N"}), "a tensor has no storage as argument 0"},
      {call(v2, {good.storage()}), "a tensor has no size as argument 2"},
      {call(v2, {good.storage(), good.first, good.shape}), "a tensor has no stride as argument 3"},
      {call(v2, {good.storage(), "N", good.shape, good.strides}),
       "a tensor has no first element as argument 1"},
      {TensorText{.first = integer(-1)}.v2(), "a tensor has first element -1, expected 0 or more"},
      {TensorText{.shape = tuple({integer(-1)})}.v2(), "a tensor has size -1, expected 0 or more"},
      {TensorText{.strides = tuple({integer(1), integer(-2)})}.v2(), "a tensor has stride -2"},
      {TensorText{.elements = integer(-1)}.v2(), "a tensor has number of elements -1"},
      {TensorText{.strides = tuple({integer(1)})}.v2(), "or not as many strides"},
      {TensorText{.shape = tuple({integer(INT64_MAX), integer(INT64_MAX)})}.v2(),
       "a tensor has an impossible shape"},
      {TensorText{.elements = integer(INT64_MAX)}.v2(),
       "a tensor has 9223372036854775807 elements of 4 bytes, expected fewer than 2^64 bytes"},
      {TensorText{.tag = text("module")}.v2(), "this is no storage, expected one"},
      {TensorText{.tag = "N"}.v2(), "a tensor has no 'storage' as argument 0"},
      {TensorText{.storage_class = name("torch", "Size")}.v2(), "this is no storage, expected one"},
      {TensorText{.storage_class = "N"}.v2(), "a tensor has no class of storages as argument 1"},
      {TensorText{.key = "N"}.v2(), "a tensor has no key as argument 2"},
      {TensorText{.elements = "N"}.v2(), "a tensor has no number of elements as argument 4"},
      {call(v2, {persistent(text("k"))}), "a storage is described by no tuple, expected one"},
      {call(name("torch._utils", "_rebuild_parameter"), {"N"}),
       "a tensor has no tensor as argument 0"},
  };
  for (const auto& [pickled, expected] : cases) {
    EXPECT_MESSAGE(FormatError, objects_of(whole(pickled)), expected);
  }
  const std::string lazy = dict({text("neg"), "\x88"});
  EXPECT_MESSAGE(UnsupportedError, objects_of(whole(good.v2(lazy))), "[m @ 1");
  EXPECT_MESSAGE(UnsupportedError, objects_of(whole(good.v2(lazy))),
                 "a tensor is stored as a lazy negation or conjugation");
  EXPECT_MESSAGE(UnsupportedError, objects_of(whole(good.v3(name("torch", "float32"), lazy))),
                 "lazy negation");
  EXPECT_MESSAGE(UnsupportedError, objects_of(whole(good.v2(list({})))), "lazy negation");
}

TEST(TorchTensors, ElementTypesByNameAndStorage) {
  struct Type {
    std::string dtype, storage;
    int bytes;
  };
  const Type types[] = {{"float32", "FloatStorage", 4},
                        {"float64", "DoubleStorage", 8},
                        {"float16", "HalfStorage", 2},
                        {"bfloat16", "BFloat16Storage", 2},
                        {"int64", "LongStorage", 8},
                        {"int32", "IntStorage", 4},
                        {"int16", "ShortStorage", 2},
                        {"int8", "CharStorage", 1},
                        {"uint8", "ByteStorage", 1},
                        {"bool", "BoolStorage", 1},
                        {"complex64", "ComplexFloatStorage", 8},
                        {"complex128", "ComplexDoubleStorage", 16},
                        {"uint16", "", 2},
                        {"uint32", "", 4},
                        {"uint64", "", 8},
                        {"float8_e5m2", "", 1},
                        {"float8_e4m3fn", "", 1},
                        {"float8_e5m2fnuz", "", 1},
                        {"float8_e4m3fnuz", "", 1},
                        {"float8_e8m0fnu", "", 1}};
  for (const Type& type : types) {
    EXPECT_EQ(storage_class_of(type.dtype), type.storage);
    const auto dtype = find_torch_name("torch", type.dtype);
    ASSERT_TRUE(dtype) << type.dtype;
    EXPECT_EQ(dtype->role, NameRole::kDtype);
    EXPECT_EQ(dtype->dtype, type.dtype);
    EXPECT_EQ(dtype->element_bytes, type.bytes);
    if (type.storage.empty()) continue;
    for (const char* module : {"torch", "torch.cuda"}) {
      const auto storage = find_torch_name(module, type.storage);
      ASSERT_TRUE(storage) << type.storage;
      EXPECT_EQ(storage->role, NameRole::kStorage);
      EXPECT_EQ(storage->dtype, type.dtype);
      EXPECT_EQ(storage->element_bytes, type.bytes);
    }
  }
  EXPECT_EQ(storage_class_of("float128"), "");
  EXPECT_FALSE(find_torch_name("torch", ""));
  EXPECT_FALSE(find_torch_name("numpy", "float32"));
}

TEST(TorchTensors, NamesByRole) {
  const std::tuple<const char*, const char*, NameRole> names[] = {
      {"torch._utils", "_rebuild_tensor", NameRole::kTensor},
      {"torch._utils", "_rebuild_tensor_v2", NameRole::kTensor},
      {"torch._utils", "_rebuild_tensor_v3", NameRole::kTensorOfDtype},
      {"torch._utils", "_rebuild_parameter", NameRole::kParameter},
      {"torch._utils", "_rebuild_parameter_with_state", NameRole::kParameter},
      {"torch.storage", "UntypedStorage", NameRole::kUntypedStorage},
      {"torch", "UntypedStorage", NameRole::kUntypedStorage},
      {"collections", "OrderedDict", NameRole::kMapping},
      {"torch", "Size", NameRole::kFirst},
      {"torch", "device", NameRole::kFirst},
      {"_codecs", "encode", NameRole::kFirst},
      {"__builtin__", "set", NameRole::kFirst},
      {"__builtin__", "frozenset", NameRole::kFirst},
      {"builtins", "set", NameRole::kFirst},
      {"builtins", "frozenset", NameRole::kFirst},
      {"torch.jit._pickle", "build_intlist", NameRole::kFirst},
      {"torch.jit._pickle", "build_tensorlist", NameRole::kFirst},
      {"torch.jit._pickle", "build_doublelist", NameRole::kFirst},
      {"torch.jit._pickle", "build_boollist", NameRole::kFirst},
      {"torch.jit._pickle", "restore_type_tag", NameRole::kFirst},
      {"__torch__", "M", NameRole::kClass},
      {"__torch__.a.b", "M", NameRole::kClass},
  };
  for (const auto& [module, name, role] : names) {
    const auto found = find_torch_name(module, name);
    ASSERT_TRUE(found) << module << "." << name;
    EXPECT_EQ(found->role, role) << module << "." << name;
  }
  EXPECT_FALSE(find_torch_name("__torch__x", "M"));
  EXPECT_FALSE(find_torch_name("torch.nn", "Size"));
}

// ---- Values ------------------------------------------------------------------------------------

std::string values_of(const std::string& pickled, const std::string& prefix = "") {
  std::string shown;
  for (const NamedValue& value : objects_of(whole(pickled), prefix).values) {
    shown += value.name + "#" + std::to_string(value.value.index()) + " ";
  }
  return shown;
}

// The number is that of the value's kind: none, bool, integer, real, string, and lists of the
// last three.
TEST(TorchValues, NamesAndKinds) {
  const std::pair<std::string, std::string> cases[] = {
      {dict({text("a"), "N", "K\7", "\x88"}), "a#0 7#1 "},
      {dict({text("a"), dict({text("b"), "K\1"})}), "a.b#2 "},
      {list({"K\1", "K\2"}), "#5 "},
      {list({"K\1", std::string("G\0\0\0\0\0\0\0\0", 9)}), "#6 "},
      {list({text("x"), text("y")}), "#7 "},
      {list({}), "#5 "},
      {list({"K\1", text("x")}), "0#2 1#4 "},
      {list({text("x"), "K\1"}), "0#4 1#2 "},
      {list({"\x88", "K\1"}), "0#1 1#2 "},
      {name("torch", "float16"), "#4 "},
      {std::string("C\1x"), "#4 "},
  };
  for (const auto& [pickled, expected] : cases) EXPECT_EQ(values_of(pickled), expected);
  EXPECT_EQ(values_of(dict({text("a"), "N"}), "c"), "c.a#0 ");
  EXPECT_EQ(std::get<std::string>(objects_of(whole(name("torch", "float16"))).values[0].value),
            "torch.float16");
  const auto hex = objects_of(whole(std::string("\x8a\x09\x1f\2\3\4\5\6\7\x08\xa9", 11)));
  EXPECT_EQ(std::get<std::string>(hex.values[0].value), "0xa9080706050403021f");
}

TEST(TorchValues, Errors) {
  const std::pair<std::string, std::string> cases[] = {
      {dict({"N", "N"}), "a dictionary has a key that is no string and no integer"},
      {dict({text("s"), TensorText().storage()}), "'s' is a storage, expected a tensor"},
      {dict({text("a\nb"), "N"}), "is not UTF-8 or holds a control character, expected neither"},
      {dict({text("\xff"), TensorText().v2()}), "is not UTF-8 or holds a control character"},
      {name("torch", "Size"), "a function or a class stands for a value, expected a value"},
      {dict({text("a"), dict({text("b"), "N"}), text("a.b"), "N"}),
       "[m @ 1000] two values are named 'a.b', expected one"},
  };
  for (const auto& [pickled, expected] : cases) {
    EXPECT_MESSAGE(FormatError, objects_of(whole(pickled)), expected);
  }
}

TEST(TorchValues, Depth) {
  const auto nested = [](int lists) {
    return std::string(static_cast<std::size_t>(lists), ']') +
           std::string(static_cast<std::size_t>(lists) - 1, 'a');
  };
  EXPECT_EQ(objects_of(whole(nested(65))).values.size(), 1u);
  EXPECT_MESSAGE(FormatError, objects_of(whole(nested(66))),
                 "containers are nested more than 64 deep, or contain themselves");
}

// ---- The old form ------------------------------------------------------------------------------

struct OldFile {
  std::string version = integer(1001), object, keys = list({text("k")});
  std::string storages;

  OldFile() {
    object = dict({text("a"), TensorText{.first = integer(0)}.v2()});
    put_fixed(&storages, std::uint64_t{8});
    storages.append(32, '\1');
  }
  std::string bytes() const {
    return std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15) +
           whole(version) + whole(dict({})) + whole(object) + whole(keys) + storages;
  }
};

TEST(TorchOldForm, Errors) {
  const TempFolder folder;
  const auto open = [&](const OldFile& file) {
    write_raw(folder / "m", file.bytes());
    return ModelFile(folder / "m");
  };
  EXPECT_EQ(open(OldFile()).read_bytes("a"), std::string(24, '\1'));
  const auto expect = [&](const auto& change, const char* message) {
    OldFile file;
    change(&file);
    EXPECT_MESSAGE(FormatError, open(file), message);
  };
  expect([](OldFile* f) { f->version = integer(1000); }, "the version of the file is not 1001");
  expect([](OldFile* f) { f->version = text("1001"); }, "the version of the file is not 1001");
  expect([](OldFile* f) { f->keys = dict({}); }, "the keys of storages are no list");
  expect([](OldFile* f) { f->keys = list({"K\1"}); }, "the key of a storage is no string");
  expect([](OldFile* f) { f->keys = list({text("z")}); }, "storage 'z' is of no tensor");
  expect([](OldFile* f) { f->keys = list({}); }, "the storages end here, expected the end of the");
  expect([](OldFile* f) { f->storages += 'x'; }, "the storages end here, expected the end of the");
  expect([](OldFile* f) { f->storages.pop_back(); }, "storage 'k' has 8 elements of 4 bytes");
  expect(
      [](OldFile* f) {
        f->keys = list({text("k"), text("k")});
        f->storages += f->storages;
      },
      "storage 'k' is there twice, expected once");
  expect(
      [](OldFile* f) {
        f->keys = list({});
        f->storages.clear();
      },
      "a tensor has storage 'k', expected one of those that follow");
  const auto part = [](std::int64_t first, std::int64_t elements) {
    const std::string view = tuple({text("v"), integer(first), integer(elements)});
    return dict({text("a"), TensorText{.part = view, .first = integer(0)}.v2()});
  };
  expect([&](OldFile* f) { f->object = part(1, 8); },
         "a tensor has 32 bytes from byte 4 of a storage of 32, expected it inside");
  expect([&](OldFile* f) { f->object = part(9, 8); }, "from byte 36 of a storage of 32");
  OldFile view;
  view.object = part(2, 6);
  view.storages[8 + 8] = '\7';
  EXPECT_EQ(open(view).read_bytes("a"), '\7' + std::string(23, '\1'));
}

// More than the first piece that is read of a pickle.
TEST(TorchOldForm, APickleOfManyBytes) {
  const TempFolder folder;
  OldFile file;
  file.object = dict(
      {text("a"), TensorText{.first = integer(0)}.v2(), text("t"), text(std::string(200000, 'x'))});
  write_raw(folder / "m", file.bytes());
  EXPECT_EQ(std::get<std::string>(ModelFile(folder / "m").values().at(0).value).size(), 200000u);
}

// ---- The archive -------------------------------------------------------------------------------

void write_archive(const std::string& path,
                   const std::vector<std::pair<std::string, std::string>>& entries) {
  write_raw(path, "");
  replace_file(path, [&](OutputFile& file) {
    ZipWriter writer(&file, 64);
    for (const auto& [name, bytes] : entries) writer.add(name, bytes.data(), bytes.size());
    writer.finish();
  });
}

TEST(TorchArchive, Entries) {
  const TempFolder folder;
  const std::string elements(32, '\2');
  const std::string one = whole(dict({text("a"), TensorText().v2()}));
  const std::string fewer = TensorText{.elements = integer(7), .first = integer(0)}.v2();
  const auto open = [&](const std::vector<std::pair<std::string, std::string>>& entries) {
    write_archive(folder / "m", entries);
    return ModelFile(folder / "m");
  };
  EXPECT_EQ(open({{"m/data.pkl", one}, {"m/data/k", elements}}).kind(), FileKind::kTorch);
  const ModelFile script =
      open({{"m/data.pkl", one}, {"m/constants.pkl", whole(tuple({}))}, {"m/data/k", elements}});
  EXPECT_EQ(script.kind(), FileKind::kTorchScript);
  EXPECT_EQ(script.values().at(0).name, "CONSTANTS");
  EXPECT_NO_THROW(open({{"m/data.pkl", one}, {"m/byteorder", "little"}, {"m/data/k", elements}}));
  EXPECT_MESSAGE(UnsupportedError,
                 open({{"m/data.pkl", one}, {"m/byteorder", "big"}, {"m/data/k", elements}}),
                 "byteorder is 'big', expected little");
  // As many bytes as the pickle says, for each tensor that shares them.
  EXPECT_MESSAGE(FormatError,
                 open({{"m/data.pkl", whole(dict({text("a"), fewer}))}, {"m/data/k", elements}}),
                 "a tensor has a storage of 28 bytes, expected 32 as 'm/data/k' has");
  EXPECT_MESSAGE(FormatError, open({{"m/data.pkl", one}}), "a tensor is in 'm/data/k', expected");
  EXPECT_MESSAGE(FormatError, open({{"m/data.pkl", one.substr(0, 9)}, {"m/data/k", elements}}),
                 "the pickle 'm/data.pkl' does not end, expected its end");
  // Two roots are none, and neither is one below another folder.
  for (const char* second : {"n/data.pkl", "m/n"}) {
    const bool two = second[0] == 'n';
    const std::vector<std::pair<std::string, std::string>> entries{
        {two ? "m/data.pkl" : "m/n/data.pkl", one}, {second, one}, {"m/data/k", elements}};
    EXPECT_MESSAGE(FormatError, open(entries), "this is a zip archive without NAME/data.pkl");
  }
}

}  // namespace
}  // namespace openrnn::formats
