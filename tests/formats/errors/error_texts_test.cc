// What is said of every file of the fuzzers' corpora that is refused, word for word: each number,
// name and place counts. OPENRNN_REGENERATE_GOLDEN=1 writes tests/golden/error_texts.txt anew.
#include <gtest/gtest.h>
#include <openrnn/formats.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/message.h"
#include "formats/checkpoint_state.h"
#include "formats/errors/own_part.h"
#include "formats/event_file.h"
#include "formats/model_file/open.h"
#include "formats/npy/npy.h"
#include "formats/objects/object_graph.h"
#include "formats/onnx/onnx_file.h"
#include "formats/torch/objects.h"
#include "formats/wav/wav.h"
#include "support/expect_error.h"
#include "support/files/fnv.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

const std::string kKept = source_file("tests/golden/error_texts.txt");

using Texts = std::vector<std::string>;

template <class Call>
void say(Texts* texts, const Call& call) {
  const std::string text = own_part(error_of(call));
  if (!text.empty() && std::ranges::find(*texts, text) == texts->end()) texts->push_back(text);
}

std::unique_ptr<ByteSource> nothing_in(const std::string& name) {
  return std::make_unique<MemorySource>(name, "");
}

// Whatever the tensors of a model file are asked for.
void say_of_model(Texts* texts, const std::string& bytes, bool is_onnx) {
  FileContents contents;
  say(texts, [&] {
    auto file = std::make_unique<MemorySource>("F", bytes);
    contents = is_onnx ? read_onnx_contents(std::move(file), nothing_in)
                       : open_contents(std::move(file), nothing_in);
  });
  for (std::size_t i = 0; i < contents.tensors.size(); ++i) {
    say(texts, [&] { read_tensor(contents, i); });
    say(texts, [&] { view_tensor(contents, i); });
    say(texts, [&] { read_tensor_rows(contents, i, [](auto&&...) {}); });
  }
  say(texts, [&] { verify_contents(contents); });
}

void say_of_pickle(const std::string& bytes) {
  const std::optional<Pickle> pickle = parse_pickle("F", 0, bytes);
  if (pickle) torch_objects(*pickle, "");
}

using Reader = void (*)(const std::string& bytes);
const std::pair<const char*, Reader> kReaders[] = {
    {"npy", [](const std::string& bytes) { read_npy(MemorySource("F", bytes)); }},
    {"wav", [](const std::string& bytes) { read_wav(MemorySource("F", bytes)); }},
    {"event_file", [](const std::string& bytes) { decode_scalar_events("F", bytes); }},
    {"object_graph", [](const std::string& bytes) { decode_object_graph("F", bytes); }},
    {"checkpoint_state", [](const std::string& bytes) { decode_checkpoint_state("F", bytes); }},
    {"pickle", say_of_pickle},
};

Texts texts_of(const std::string& folder, const std::string& bytes) {
  Texts texts;
  for (const auto& [name, read] : kReaders) {
    if (folder == name) say(&texts, [&, read = read] { read(bytes); });
  }
  const char* const models[] = {"hdf5", "json_model",  "keras_archive", "npz",
                                "onnx", "safetensors", "tf_file",       "torch_file"};
  const bool is_model = std::ranges::find(models, folder) != std::end(models);
  if (is_model) say_of_model(&texts, bytes, folder == "onnx");
  return texts;
}

// Of the errors that the file makes with bytes changed, and cut: some hundreds.
std::string hash_of_changes(const std::string& folder, const std::string& bytes) {
  Hash hash;
  const auto add = [&](const std::string& changed) {
    for (const std::string& text : texts_of(folder, changed)) hash.add(text);
  };
  const std::size_t step = bytes.size() / 97 + 1;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    add(bytes.substr(0, at));
    for (const int change : {1, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      add(changed);
    }
  }
  return hash.digits();
}

// By 'FOLDER/FILE' and a number.
std::map<std::string, std::string> texts_now() {
  std::map<std::string, std::string> all;
  namespace fs = std::filesystem;
  for (const auto& folder : fs::directory_iterator(source_file("fuzz/corpus"))) {
    const std::string kind = folder.path().filename();
    for (const auto& item : fs::directory_iterator(folder.path())) {
      const std::string name = kind + "/" + item.path().filename().string();
      const std::string bytes = read_file(item.path());
      const Texts texts = texts_of(kind, bytes);
      for (std::size_t i = 0; i < texts.size(); ++i) all[message(name, "#", i)] = texts[i];
      // Where a byte of JSON is wrong, its parser says.
      const bool is_text = kind == "json_model" || kind == "safetensors" || kind == "keras_archive";
      if (!is_text && item.path().filename().string().starts_with("good_") && bytes.size() < 8000) {
        all[name + " changed"] = hash_of_changes(kind, bytes);
      }
    }
  }
  return all;
}

TEST(ErrorTexts, AreThoseThatAreKept) {
  const std::map<std::string, std::string> now = texts_now();
  if (const char* text = std::getenv("OPENRNN_REGENERATE_GOLDEN"); text && *text == '1') {
    std::ofstream file(kKept);
    file << "# What is said of the files of fuzz/corpus, and a hash of what is said of changes.\n";
    for (const auto& [name, said] : now) file << name << ": " << said << "\n";
    ASSERT_TRUE(file.good()) << "cannot write " << kKept;
    GTEST_SKIP() << "wrote " << kKept;
  }
  EXPECT_GT(now.size(), 250U);
  std::ifstream file(kKept);
  std::map<std::string, std::string> kept;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line[0] != '#') kept[line.substr(0, colon)] = line.substr(colon + 2);
  }
  for (const auto& [name, said] : now) EXPECT_EQ(kept[name], said) << name;
  EXPECT_EQ(kept.size(), now.size()) << kKept;
}

}  // namespace
}  // namespace openrnn::formats
