#include "formats/checkpoint_state.h"

#include <gtest/gtest.h>
#include <openrnn/formats.h>

#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

TEST(CheckpointState, PathsInsideTheFolderAreRelativeInTheFile) {
  const TempFolder folder;
  const CheckpointState state{
      folder / "m-2", {folder / "m-1", "/elsewhere/m", folder / "m-2"}, {}, {}};
  write_checkpoint_state(folder.path() + "/", state);
  EXPECT_EQ(read_file(folder / "checkpoint"),
            "model_checkpoint_path: \"m-2\"\n"
            "all_model_checkpoint_paths: \"m-1\"\n"
            "all_model_checkpoint_paths: \"/elsewhere/m\"\n"
            "all_model_checkpoint_paths: \"m-2\"\n");
  const auto found = read_checkpoint_state(folder.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->latest, state.latest);
  EXPECT_EQ(found->all, state.all);
  EXPECT_TRUE(found->timestamps.empty());
  EXPECT_FALSE(found->last_preserved_timestamp);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"checkpoint"});
}

// One whose name begins as the folder's does is another one.
TEST(CheckpointState, PathsBesideTheFolderStay) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "run");
  const std::string beside = folder / "run2/m";
  write_checkpoint_state(folder / "run", {beside, {folder / "run/m", beside}, {}, {}});
  const auto found = read_checkpoint_state(folder / "run");
  EXPECT_EQ(found->latest, beside);
  EXPECT_EQ(found->all, (std::vector<std::string>{folder / "run/m", beside}));
}

TEST(CheckpointState, FolderCanBeMoved) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "old");
  write_checkpoint_state(folder / "old", {folder / "old/m", {folder / "old/m"}, {}, {}});
  std::filesystem::rename(folder / "old", folder / "new");
  EXPECT_EQ(read_checkpoint_state(folder / "new")->latest, folder / "new/m");
}

// Programs that save to 'checkpoint/m' make a folder of the state file's name.
TEST(CheckpointState, AFolderInThePlaceOfAFileIsNoFile) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "checkpoint");
  EXPECT_FALSE(read_checkpoint_state(folder.path()));
  std::filesystem::create_directory(folder / "m.index");
  EXPECT_FALSE(tensor_bundle_exists(folder / "m"));
  EXPECT_MESSAGE(IoError, TensorBundleReader(folder / "m"), "m.index is missing");
}

// As a caller there names its files.
TEST(CheckpointState, OfTheCurrentFolderHasPlainNames) {
  const TempFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const std::string here : {".", "./", ""}) {
    write_checkpoint_state(here, {"m-2", {"m-1", "inside/m", "m-2"}, {}, {}});
    const auto found = read_checkpoint_state(here);
    EXPECT_EQ(found->latest, "m-2") << here;
    EXPECT_EQ(found->all, (std::vector<std::string>{"m-1", "inside/m", "m-2"})) << here;
  }
  EXPECT_EQ(read_checkpoint_state(folder.path())->latest, folder / "m-2");
  std::filesystem::current_path(before);
}

TEST(CheckpointState, TimesKeepTheirBits) {
  const TempFolder folder;
  write_checkpoint_state(folder.path(), {"m", {"m"}, {1700000000.1234567}, 0.1});
  const auto found = read_checkpoint_state(folder.path());
  EXPECT_EQ(found->timestamps, std::vector<double>{1700000000.1234567});
  EXPECT_EQ(found->last_preserved_timestamp, 0.1);
}

TEST(CheckpointState, NoFileIsNoState) {
  const TempFolder folder;
  EXPECT_FALSE(read_checkpoint_state(folder.path()));
  EXPECT_FALSE(read_checkpoint_state(folder / "nowhere"));
}

TEST(CheckpointState, WhatOthersWrite) {
  const TempFolder folder;
  write_raw(
      folder / "checkpoint",
      "# by hand\nmodel_checkpoint_path:'ab\\X41\\101\\n\\x4' all_model_checkpoint_paths: \"x\"\r\n"
      "  all_model_checkpoint_paths: 'y' # the last\nsome_number: -1.5e3\nname: \"n\"\n"
      "last_preserved_timestamp: 5");
  const auto found = read_checkpoint_state(folder.path());
  EXPECT_EQ(found->latest, folder / "abAA\n\x04");
  EXPECT_EQ(found->all, (std::vector<std::string>{folder / "x", folder / "y"}));
  EXPECT_EQ(found->last_preserved_timestamp, 5.0);
}

void expect_error(const std::string& text, const std::string& part) {
  const TempFolder folder;
  write_raw(folder / "checkpoint", text);
  EXPECT_MESSAGE(FormatError, read_checkpoint_state(folder.path()), part);
}

// As C's: two hexadecimal digits at most, three octal ones.
TEST(CheckpointState, EscapesEndAfterTheirDigits) {
  const std::pair<const char*, std::string> cases[] = {{"\\x414", "A4"},
                                                       {"\\X4g", "\x04g"},
                                                       {"\\x4", "\x04"},
                                                       {"\\1014", "A4"},
                                                       {"\\7z", "\az"},
                                                       {"\\18",
                                                        "\1"
                                                        "8"},
                                                       {"\\'\\\"", "'\""},
                                                       {"\\n\\t\\r", "\n\t\r"}};
  for (const auto& [written, path] : cases) {
    for (const std::string quote : {"\"", "'"}) {
      const std::string text = "model_checkpoint_path: " + quote + "/m" + written + quote;
      EXPECT_EQ(decode_checkpoint_state(".", text).latest, "/m" + path) << text;
    }
  }
}

TEST(CheckpointState, EscapesOfOneLetter) {
  const std::pair<const char*, std::string> cases[] = {
      {"\\a", "\a"}, {"\\b", "\b"}, {"\\f", "\f"}, {"\\n", "\n"},  {"\\r", "\r"}, {"\\t", "\t"},
      {"\\v", "\v"}, {"\\?", "?"},  {"\\'", "'"},  {"\\\"", "\""}, {"\\\\", "\\"}};
  for (const auto& [written, letter] : cases) {
    const std::string text = std::string("model_checkpoint_path: \"/") + written + "z\"";
    EXPECT_EQ(decode_checkpoint_state(".", text).latest, "/" + letter + "z") << text;
  }
}

// The fields may come in any order; a name that is not known has no say.
TEST(CheckpointState, EachFieldIsItsOwn) {
  const CheckpointState state = decode_checkpoint_state(
      "run",
      "all_model_checkpoint_timestamps: 1.5\nlast_preserved_timestamp: 2.5\nother: 9\n"
      "all_model_checkpoint_paths: \"a\"\nall_model_checkpoint_timestamps: 3.5\n"
      "all_model_checkpoint_paths: \"/b\"\nmodel_checkpoint_path: \"old\"\n"
      "model_checkpoint_path: \"/b\"\n");
  EXPECT_EQ(state.latest, "/b");
  EXPECT_EQ(state.all, (std::vector<std::string>{"run/a", "/b"}));
  EXPECT_EQ(state.timestamps, (std::vector<double>{1.5, 3.5}));
  EXPECT_EQ(state.last_preserved_timestamp, 2.5);
}

TEST(CheckpointState, Damage) {
  expect_error("", "checkpoint @ 0] model_checkpoint_path is missing");
  expect_error("model_checkpoint_path", "@ 21] expected ':' after 'model_checkpoint_path'");
  expect_error("model_checkpoint_path: ", "expected a quoted string or a number");
  expect_error("model_checkpoint_path: \"m", "a string does not end in its line");
  expect_error("model_checkpoint_path: \"m\n\"", "a string does not end in its line");
  expect_error("model_checkpoint_path: \"m\\000n\"",
               "model_checkpoint_path is 'm\\000n', expected a quoted path without zero bytes");
  expect_error("model_checkpoint_path: \"m\\", "a string ends in an escape");
  expect_error("model_checkpoint_path: \"\\q\"", "an escape that is not known: \\q");
  expect_error("model_checkpoint_path: \"\\xg\"", "expected digits in an escape");
  expect_error("model_checkpoint_path: 5", "is '5', expected a quoted path");
  expect_error("model_checkpoint_path: \"\"", "expected a quoted path");
  expect_error("last_preserved_timestamp: \"5\"", "is '5', expected a number");
  expect_error("all_model_checkpoint_timestamps: 5x", "is '5x', expected a number");
  expect_error("all_model_checkpoint_paths: [\"a\"]", "@ 28] expected a quoted string or a number");
  expect_error("model_checkpoint_path: \"a\" \"b\"", "@ 27] expected a field's name");
  expect_error("message { a: 1 }", "@ 8] expected ':' after 'message'");
  expect_error("\x80\x01garbage", "expected a field's name");
}

TEST(CheckpointState, WrongArguments) {
  const TempFolder folder;
  EXPECT_MESSAGE(ArgumentError, write_checkpoint_state(folder.path(), {}), "latest is empty");
  EXPECT_MESSAGE(ArgumentError, write_checkpoint_state(folder.path(), {"m", {"m"}, {1, 2}, {}}),
                 "2 timestamps, expected none or 1");
  EXPECT_THROW(write_checkpoint_state(folder / "nowhere", {"m", {}, {}, {}}), IoError);
}

TEST(CheckpointState, APathMayHoldAnyByteButZero) {
  const TempFolder folder;
  std::string all;
  for (int i = 1; i < 256; ++i) all += static_cast<char>(i);
  all += "7";  // after an octal escape
  write_checkpoint_state(folder.path(), {"/" + all, {}, {}, {}});
  for (const char c : read_file(folder / "checkpoint")) {
    EXPECT_TRUE((c >= 0x20 && c < 0x7f) || c == '\n');
  }
  EXPECT_EQ(read_checkpoint_state(folder.path())->latest, "/" + all);
  // Newer ones of TensorFlow leave UTF-8 as it is.
  write_raw(folder / "checkpoint", "model_checkpoint_path: \"/\xc3\xa9\\303\\251\"\n");
  EXPECT_EQ(read_checkpoint_state(folder.path())->latest, "/\xc3\xa9\xc3\xa9");
}

}  // namespace
}  // namespace openrnn::formats
