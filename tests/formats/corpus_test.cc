// Replays what the fuzzers start from: files named good_* are read, files named bad_* are refused,
// and the rest, which a fuzzer found, must only do no harm.

#include <gtest/gtest.h>

#include "../../fuzz/entries/formats.h"
#include "../../fuzz/entries/model_file.h"
#include "../../fuzz/entries/network_file.h"
#include "../../fuzz/entries/onnx.h"
#include "formats/temp_folder.h"
#include "support/files/source_file.h"

namespace openrnn::formats {
namespace {

void replay(const std::string& corpus, bool (*entry)(std::string_view)) {
  int good = 0, bad = 0;
  const std::string folder = source_file("fuzz/corpus/" + corpus);
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    const bool passed = entry(read_file(item.path().string()));
    if (name.starts_with("good_")) {
      EXPECT_TRUE(passed) << name;
      ++good;
    } else if (name.starts_with("bad_")) {
      EXPECT_FALSE(passed) << name;
      ++bad;
    }
  }
  EXPECT_GT(good, 1);
  EXPECT_GT(bad, 1);
}

TEST(Corpus, TensorBundle) { replay("tensor_bundle", fuzz_tensor_bundle); }
TEST(Corpus, EventFile) { replay("event_file", fuzz_event_file); }
TEST(Corpus, ObjectGraph) { replay("object_graph", fuzz_object_graph); }
TEST(Corpus, Safetensors) { replay("safetensors", fuzz_model_file); }
TEST(Corpus, Pickle) { replay("pickle", fuzz_pickle); }
TEST(Corpus, TorchFile) { replay("torch_file", fuzz_model_file); }
TEST(Corpus, Onnx) { replay("onnx", fuzz_onnx); }
TEST(Corpus, Hdf5) { replay("hdf5", fuzz_model_file); }
TEST(Corpus, KerasArchive) { replay("keras_archive", fuzz_model_file); }
TEST(Corpus, Npy) { replay("npy", fuzz_npy); }
TEST(Corpus, Npz) { replay("npz", fuzz_npz); }
TEST(Corpus, Wav) { replay("wav", fuzz_wav); }
TEST(Corpus, NetworkFile) { replay("network_file", fuzz_network_file); }
TEST(Corpus, CheckpointState) { replay("checkpoint_state", fuzz_checkpoint_state); }

}  // namespace
}  // namespace openrnn::formats
