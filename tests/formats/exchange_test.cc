// Saving over an existing prefix: whatever moment the process dies at, one whole pair is read.

#include <gtest/gtest.h>
#include <openrnn/formats.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = ".data-00000-of-00001";

// Two tensors that say which save they are of; the second is large enough to be cut in its middle.
void save(const std::string& prefix, float version) {
  TensorBundleWriter writer(prefix);
  writer.add("version", array_of<float>({1}, {version}));
  writer.add("body", array_of<float>({1, 5000}, std::vector<float>(5000, version)));
  writer.finish();
}

float load(const std::string& prefix) {
  const TensorBundleReader reader(prefix);
  const float version = reader.read("version").as<float>()[0];
  const Array body = reader.read("body");
  for (const float value : body.as<float>()) EXPECT_EQ(value, version);
  return version;
}

class Exchange : public testing::Test {
 protected:
  // Old is 1, new is 2; `stage` makes the files that a save of 2 over 1 has at that moment.
  void stage(bool old_there, bool data_renamed) {
    if (old_there) save(prefix, 1);
    save(folder / "other", 2);
    fs::rename(folder / "other" + kData, prefix + kData + (data_renamed ? "" : ".new"));
    fs::rename(folder / "other.index", prefix + ".index.new");
  }
  void cut(const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }
  void expect_only_the_pair() {
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"m" + std::string(kData), "m.index"}));
  }

  const TempFolder folder;
  const std::string prefix = folder / "m";
};

TEST_F(Exchange, DiedBeforeTheFirstRenameOldStands) {
  stage(true, false);
  EXPECT_EQ(load(prefix), 1);
  save(prefix, 3);
  EXPECT_EQ(load(prefix), 3);
  expect_only_the_pair();
}

TEST_F(Exchange, DiedWhileWritingOldStands) {
  for (const std::string& name : {std::string(kData) + ".new", std::string(".index.new")}) {
    stage(true, false);
    cut(prefix + name);
    EXPECT_EQ(load(prefix), 1) << name;
  }
  save(prefix, 3);
  EXPECT_EQ(load(prefix), 3);
  expect_only_the_pair();
}

TEST_F(Exchange, DiedBetweenTheRenamesReaderFinishes) {
  stage(true, true);
  EXPECT_EQ(load(prefix), 2);
  expect_only_the_pair();
  EXPECT_EQ(load(prefix), 2);
}

TEST_F(Exchange, DiedBetweenTheRenamesNextWriterFinishesFirst) {
  stage(true, true);
  TensorBundleWriter unfinished_writer(prefix);  // and this one dies too: nothing may be lost
  unfinished_writer.add("version", array_of<float>({1}, {3}));
  EXPECT_EQ(load(prefix), 2);
}

TEST_F(Exchange, FirstSaveEverIsFinished) {
  stage(false, false);
  EXPECT_TRUE(tensor_bundle_exists(prefix));
  EXPECT_EQ(load(prefix), 2);
  expect_only_the_pair();
}

TEST_F(Exchange, FirstSaveEverDiedWhileWriting) {
  stage(false, false);
  cut(prefix + kData + ".new");
  EXPECT_MESSAGE(IoError, load(prefix), "m.index is missing");
  save(prefix, 3);
  EXPECT_EQ(load(prefix), 3);
  expect_only_the_pair();
}

TEST_F(Exchange, StrayIndexThatFitsNothingIsPassedOver) {
  save(prefix, 1);
  save(folder / "other", 2);
  fs::rename(folder / "other.index", prefix + ".index.new");
  EXPECT_EQ(load(prefix), 1);
}

TEST_F(Exchange, FailureInTheMiddleOfASaveKeepsTheOld) {
  save(prefix, 1);
  // A folder in the way of the unfinished index, so that it cannot be created.
  fs::create_directory(prefix + ".index.new");
  EXPECT_THROW(save(prefix, 2), IoError);
  EXPECT_EQ(load(prefix), 1);
}

TEST_F(Exchange, KilledAtAnyMoment) {
  save(prefix, 1);
  float least = 1;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (float version = least + 1;; ++version) save(prefix, version);
    }
    ::usleep(static_cast<useconds_t>(3000 + 1777 * round));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const float found = load(prefix);
    EXPECT_GE(found, least);
    least = found;
  }
}

}  // namespace
}  // namespace openrnn::formats
