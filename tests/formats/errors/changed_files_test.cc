// What is read of every good file of the fuzzers' corpora, and of hundreds of changes of each by
// the fuzzers' mutators, which keep lengths and checksums right: all that is listed, all elements,
// or what is said. OPENRNN_REGENERATE_GOLDEN=1 writes tests/golden/changed_files.txt anew.
#include <gtest/gtest.h>
#include <openrnn/formats.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <map>

#include "../../../fuzz/mutators/safetensors.h"
#include "../../../fuzz/mutators/table.h"
#include "../../../fuzz/mutators/zip.h"
#include "base/message.h"
#include "formats/bundle/bundle.h"
#include "formats/checkpoint_state.h"
#include "formats/errors/own_part.h"
#include "formats/event_file.h"
#include "formats/model_file/open.h"
#include "formats/npy/npy.h"
#include "formats/npy/npz_values.h"
#include "formats/objects/object_graph.h"
#include "formats/onnx/onnx_file.h"
#include "formats/torch/objects.h"
#include "formats/wav/wav.h"
#include "support/files/fnv.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

const std::string kKept = source_file("tests/golden/changed_files.txt");

// ---- What is read, as text ---------------------------------------------------------------------

// What a parser of JSON says is its own, its place in the text, too.
std::string shown(const Error& error) {
  const std::string text = error.what();
  if (text.find("[json.exception") != std::string::npos) return "no JSON";
  const bool is_unsupported = dynamic_cast<const UnsupportedError*>(&error) != nullptr;
  return (is_unsupported ? "unsupported " : "error ") + own_part(text);
}

template <class Call>
void show(std::string* out, const Call& call) {
  try {
    *out += call();
  } catch (const Error& error) {
    *out += shown(error);
  }
  *out += '\n';
}

std::string shown(double value) { return message(std::bit_cast<std::uint64_t>(value), "f"); }

std::string shown(const ConstArrayView& array) {
  return message(dtype_name(array.dtype), to_string(array.shape),
                 std::string_view(static_cast<const char*>(array.data), array.size_bytes()));
}

struct ShowPlain {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return message(value, "i"); }
  std::string operator()(double value) const { return shown(value); }
  std::string operator()(const std::string& value) const { return "'" + value + "'"; }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string out = message("[", sizeof(T));
    for (const T& value : values) out += (*this)(value) + ",";
    return out + "]";
  }
};

std::string shown(const TensorInfo& info) {
  return message("'", info.name, "' ", info.dtype, to_string(info.shape), info.bytes, info.sliced);
}

std::string shown(const std::vector<NamedValue>& values) {
  std::string out;
  for (const NamedValue& value : values) {
    out += value.name + "=" + std::visit(ShowPlain(), value.value) + "\n";
  }
  return out;
}

std::string shown(const FileContents& contents) {
  std::string out = message(static_cast<int>(contents.kind), "\n", shown(contents.values));
  for (std::size_t i = 0; i < contents.tensors.size(); ++i) {
    out += shown(contents.tensors[i]);
    show(&out, [&] { return read_tensor_bytes(contents, i); });
    show(&out, [&] { return shown(read_tensor(contents, i).view()); });
    show(&out, [&] {
      const auto view = view_tensor(contents, i);
      return view ? shown(*view) : std::string();
    });
    show(&out, [&] {
      std::string rows;
      read_tensor_rows(contents, i, [&](std::int64_t first, const ConstArrayView& some) {
        rows += message(first, shown(some));
      });
      return rows;
    });
  }
  show(&out, [&] { return verify_contents(contents), std::string(); });
  return out;
}

// ---- The readers -------------------------------------------------------------------------------

std::string of_model(const std::string& bytes) {
  // The files that an index names are behind its first zero byte.
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string index = bytes.substr(0, end);
  const std::string shard = bytes.substr(std::min(bytes.size(), end + 1));
  const bool is_index = bytes.starts_with('{') && !shard.empty();
  return shown(open_contents(
      std::make_unique<MemorySource>("F", is_index ? index : bytes),
      [&](const std::string& name) { return std::make_unique<MemorySource>(name, shard); }));
}

std::string of_onnx(const std::string& bytes) {
  const auto file = std::make_shared<MemorySource>("F", bytes);
  const std::string data = bytes.substr(std::min(bytes.size(), bytes.find('\0')));
  const auto open = [&](const std::string& name) {
    return std::make_unique<MemorySource>(name, data);
  };
  std::string out;
  show(&out, [&] { return encode_onnx(parse_onnx(file, open)); });
  show(&out, [&] { return shown(read_onnx_contents(file, open)); });
  return out;
}

std::string of_pickle(const std::string& bytes) {
  const std::optional<Pickle> pickle = parse_pickle("F", 3, bytes);
  if (!pickle) return "no pickle";
  const TorchObjects objects = torch_objects(*pickle, "p");
  std::string out = message(pickle->bytes.size(), "\n", shown(objects.values));
  for (const TorchTensor& tensor : objects.tensors) {
    const TorchStorage& storage = tensor.storage;
    out += message(shown(tensor.info), " ", storage.key, " ", storage.bytes, " ",
                   int{storage.element_bytes}, " ", storage.before, " ", storage.at, " ",
                   int{tensor.element_bytes}, " ", tensor.first, to_string(tensor.strides), "\n");
  }
  return out;
}

// The length of the index in 4 bytes, the index, then the only data file.
std::string of_bundle(const std::string& bytes) {
  ByteCursor in(bytes);
  std::uint32_t index_size = 0;
  std::string_view index, data;
  if (!in.fixed(&index_size) || !in.bytes(index_size, &index)) return "cut";
  in.bytes(in.remaining(), &data);
  std::string out;
  const auto read = [&](bool verify) {
    const Bundle bundle(MemorySource("I", index),
                        [&](std::int32_t shard, std::int32_t shards) {
                          return std::make_unique<MemorySource>(message("D", shard, "of", shards),
                                                                data);
                        },
                        {.verify_checksums = verify});
    std::string all;
    for (const TensorInfo& info : bundle.tensors()) {
      const BundleEntry& entry = *bundle.find(info.name);
      all += shown(info);
      show(&all, [&] { return ShowPlain()(bundle.read_strings(info.name, entry).values); });
      show(&all, [&] { return shown(bundle.read(info.name, entry).view()); });
    }
    show(&all, [&] { return bundle.verify(), std::string(); });
    return all;
  };
  for (const bool verify : {true, false}) show(&out, [&] { return read(verify); });
  return out;
}

std::string of_events(const std::string& bytes) {
  std::string out;
  for (const ScalarEvent& event : decode_scalar_events("F", bytes)) {
    out += message(event.tag, " ", event.step, shown(event.value), shown(event.wall_time), "\n");
  }
  return out;
}

std::string of_state(const std::string& bytes) {
  const CheckpointState state = decode_checkpoint_state("D", bytes);
  return state.latest + ShowPlain()(state.all) + ShowPlain()(state.timestamps) +
         shown(state.last_preserved_timestamp.value_or(-1.0));
}

bool mutate_wav_or_bytes(std::string* bytes, fuzz::Chance& chance) {
  if (!chance.one_in(4)) return fuzz::mutate_wav(bytes, chance);
  return chance.change_bytes(bytes, 0), true;
}

struct Kind {
  const char* folder;
  /// Of each file up to 4000 bytes; fewer where one takes long.
  unsigned changes;
  fuzz::Mutator mutator;
  std::string (*read)(const std::string& bytes);
};
const Kind kKinds[] = {
    {"checkpoint_state", 1000, fuzz::mutate_json, of_state},
    {"event_file", 1000, fuzz::mutate_events, of_events},
    {"hdf5", 400, fuzz::mutate_hdf5, of_model},
    {"json_model", 1000, fuzz::mutate_json, of_model},
    {"keras_archive", 400, fuzz::mutate_zip, of_model},
    {"npy", 1000, fuzz::mutate_npy,
     [](const std::string& bytes) { return shown(read_npy(MemorySource("F", bytes)).view()); }},
    {"npz", 50, fuzz::mutate_zip, of_model},
    {"object_graph", 1000, fuzz::mutate_proto,
     [](const std::string& bytes) { return encode_object_graph(decode_object_graph("F", bytes)); }},
    {"onnx", 600, fuzz::mutate_proto, of_onnx},
    {"pickle", 1000, fuzz::mutate_pickle, of_pickle},
    {"safetensors", 1000, fuzz::mutate_safetensors, of_model},
    {"tensor_bundle", 200, fuzz::mutate_bundle, of_bundle},
    {"tf_file", 1000, fuzz::mutate_tf_file, of_model},
    {"torch_file", 400, fuzz::mutate_torch, of_model},
    {"wav", 1000, mutate_wav_or_bytes,
     [](const std::string& bytes) { return shown(read_wav(MemorySource("F", bytes)).view()); }},
};

// ---- Hashes ------------------------------------------------------------------------------------

// Of the file as it is, and of all changes of it.
std::string hashes_of(const Kind& kind, const std::string& bytes) {
  const auto read = [&](const std::string& some) {
    std::string out;
    show(&out, [&] { return kind.read(some); });
    return out;
  };
  constexpr std::size_t kSmall = 4000;
  const unsigned count = bytes.size() <= kSmall ? kind.changes : kind.changes / 5;
  Hash whole, changes;
  whole.add(read(bytes));
  for (unsigned seed = 0; seed < count; ++seed) {
    std::string changed = bytes;
    fuzz::Chance chance(seed);
    if (kind.mutator(&changed, chance)) changes.add(read(changed));
  }
  return whole.digits() + " " + changes.digits();
}

// By 'FOLDER/FILE'.
std::map<std::string, std::string> hashes_now() {
  std::map<std::string, std::string> all;
  for (const Kind& kind : kKinds) {
    const std::string folder = source_file("fuzz/corpus") + "/" + kind.folder;
    for (const auto& item : std::filesystem::directory_iterator(folder)) {
      const std::string name = item.path().filename();
      if (!name.starts_with("good_")) continue;
      all[message(kind.folder, "/", name)] = hashes_of(kind, read_file(item.path()));
    }
  }
  return all;
}

TEST(ChangedFiles, AreReadAsIsKept) {
  const std::map<std::string, std::string> now = hashes_now();
  if (const char* text = std::getenv("OPENRNN_REGENERATE_GOLDEN"); text && *text == '1') {
    std::ofstream file(kKept);
    file << "# Hashes of what is read of the good files of fuzz/corpus, and of changes of each.\n";
    for (const auto& [name, hashes] : now) file << name << ": " << hashes << "\n";
    ASSERT_TRUE(file.good()) << "cannot write " << kKept;
    GTEST_SKIP() << "wrote " << kKept;
  }
  EXPECT_GT(now.size(), 60U);
  std::ifstream file(kKept);
  std::map<std::string, std::string> kept;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line[0] != '#') kept[line.substr(0, colon)] = line.substr(colon + 2);
  }
  for (const auto& [name, hashes] : now) EXPECT_EQ(kept[name], hashes) << name;
  EXPECT_EQ(kept.size(), now.size()) << kKept;
}

}  // namespace
}  // namespace openrnn::formats
