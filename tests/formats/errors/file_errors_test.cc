// What is said of files and folders that cannot be opened, written, listed or removed; and of
// models and graphs of TensorFlow that ask for too much.
#include <gtest/gtest.h>
#include <openrnn/formats.h>
#include <openrnn/formats_model_file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "base/message.h"
#include "formats/bundle/bundle_proto.h"
#include "formats/coding.h"
#include "formats/file/atomic_file.h"
#include "formats/file/byte_source.h"
#include "formats/table/table.h"
#include "formats/temp_folder.h"
#include "support/expect_error.h"
#include "support/file_calls.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

TEST(FileErrors, ZeroBytesSayWhatWasToBeDone) {
  const std::string path = "/tmp/a\0b"s;
  const auto said = [](const std::string& call, const std::string& end = "") {
    return "[" + call + "] the path /tmp/a\\000b" + end + " holds a zero byte, expected none";
  };
  EXPECT_EQ(thrown<ArgumentError>([&] { write_file_atomically(path, "x"); }),
            said("create", ".new"));
  EXPECT_EQ(thrown<ArgumentError>([&] { read_file(path); }), said("open"));
  EXPECT_EQ(thrown<ArgumentError>([&] { file_exists(path); }), said("open"));
  EXPECT_EQ(thrown<ArgumentError>([&] { is_own_file(path); }), said("open"));
  EXPECT_EQ(thrown<ArgumentError>([&] { identity_of(path); }), said("open"));
  EXPECT_EQ(thrown<ArgumentError>([&] { lock_existing(path); }), said("create"));
  EXPECT_EQ(thrown<ArgumentError>([&] { names_in(path); }), said("list"));
  EXPECT_EQ(thrown<ArgumentError>([&] { remove_file(path); }), said("remove"));
  EXPECT_EQ(thrown<ArgumentError>([&] { rename_file(path, "x"); }), said("rename"));
  EXPECT_EQ(thrown<ArgumentError>([&] { rename_file("x", path); }), said("rename"));
  EXPECT_EQ(thrown<ArgumentError>([&] { FolderSync(path + "/x"); }), said("open"));
  EXPECT_EQ(thrown<ArgumentError>([&] { ModelFile{path}; }), said("find_bundle"));
}

TEST(FileErrors, SayWhatFailedAndWhy) {
  const TempFolder folder;
  write_raw(folder / "file", "x");
  std::filesystem::create_directory(folder / "inside");
  const std::string file = folder / "file", inside = folder / "inside", gone = folder / "gone";
  EXPECT_EQ(thrown<IoError>([&] { names_in(file); }), "[list] " + file + ": Not a directory");
  EXPECT_TRUE(names_in(gone).empty());
  EXPECT_EQ(thrown<IoError>([&] { remove_file(inside); }),
            "[remove] " + inside + ": Is a directory");
  EXPECT_NO_THROW(remove_file(gone));
  EXPECT_EQ(thrown<IoError>([&] { rename_file(gone, file); }),
            "[rename] " + file + ": No such file or directory");
  EXPECT_EQ(thrown<IoError>([&] { FolderSync(gone + "/x"); }),
            "[open] " + gone + ": No such file or directory");
  EXPECT_EQ(thrown<IoError>([&] { read_file(inside); }), "[open] " + inside + ": Is a directory");
  EXPECT_EQ(thrown<IoError>([&] { FileSource{gone}; }),
            "[open] " + gone + ": No such file or directory");
  EXPECT_EQ(thrown<IoError>([&] { create_new(inside); }),
            "[create] " + inside + ": Is a directory");
}

TEST(FileErrors, ASocketIsNoFile) {
  const TempFolder folder;
  const std::string path = folder / "s";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const int end = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(end, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(thrown<IoError>([&] { read_file(path); }),
            "[open] " + path + " is a socket, expected a file");
  EXPECT_EQ(thrown<IoError>([&] { create_new(path); }),
            "[create] " + path + " is a socket, expected a file");
  ::close(end);
}

// A message's field of bytes.
std::string field(int tag, const std::string& bytes) {
  std::string out;
  put_varint64(&out, static_cast<std::uint64_t>(tag << 3 | 2));
  put_varint64(&out, bytes.size());
  return out + bytes;
}
std::string number(int tag, std::uint64_t value) {
  std::string out;
  put_varint64(&out, static_cast<std::uint64_t>(tag << 3));
  put_varint64(&out, value);
  return out;
}
std::string shape_of(const std::vector<std::uint64_t>& sizes) {
  std::string shape;
  for (const std::uint64_t size : sizes) shape += field(2, number(1, size));
  return shape;
}
std::string constant(const std::string& name, const std::string& tensor) {
  return field(1, field(1, name) + field(2, "Const") +
                      field(5, field(1, "value") + field(2, field(8, tensor))));
}

std::string problem_of(const std::string& bytes) {
  const TempFolder folder;
  write_raw(folder / "m", bytes);
  return error_of([&] {
    const ModelFile file(folder / "m");
    for (const TensorInfo& info : file.tensors()) file.read_bytes(info.name);
  });
}

// One element stands for a million: all of them together for 2^20 bytes, or 16 times the file's.
TEST(GraphLimits, HowMuchMayBeRepeated) {
  const auto graph = [](const std::vector<std::uint64_t>& counts, std::size_t filled = 0) {
    std::string bytes;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      bytes += constant("c" + std::to_string(i),
                        number(1, 4) + field(2, shape_of({counts[i]})) + number(7, 5));
    }
    if (filled > bytes.size() + 8) bytes += field(15, std::string(filled - bytes.size() - 5, 'x'));
    return bytes;
  };
  constexpr std::uint64_t kFree = 1 << 20;
  EXPECT_EQ(problem_of(graph({kFree})), "");
  EXPECT_EQ(problem_of(graph({kFree / 2, kFree / 2})), "");
  EXPECT_NE(problem_of(graph({kFree / 2, kFree / 2 + 1})).find("repeats elements"),
            std::string::npos);
  EXPECT_NE(problem_of(graph({kFree + 1}))
                .find("[read] tensor 'c0' of 1048577 bytes repeats "
                      "elements of a storage of 1 bytes, expected no "
                      "more than are stored"),
            std::string::npos);
  // 16 bytes for each of the file's, which are some more than 1.5 * 2^16.
  EXPECT_EQ(problem_of(graph({kFree + kFree / 2}, 100'000)), "");
  EXPECT_EQ(problem_of(graph({kFree, kFree / 2}, 100'000)), "");
  EXPECT_NE(problem_of(graph({kFree, kFree}, 100'000)).find("'c1' of 1048576 bytes repeats"),
            std::string::npos);
}

TEST(GraphErrors, SayWhere) {
  const std::string wide = number(1, 1) + field(2, shape_of({2}));
  const std::string good = constant("a", wide + field(4, std::string(8, 'x')));
  const TempFolder folder;
  const auto said = [&](const std::string& bytes) {
    write_raw(folder / "m", bytes);
    const std::string what = thrown<FormatError>([&] { ModelFile(folder / "m"); });
    const std::string start = "[" + folder / "m" + " @ ";
    EXPECT_TRUE(what.starts_with(start)) << what;
    return what.substr(std::min(start.size(), what.size()));
  };
  const std::string at = message(good.size() + 2, "] the constant '");
  EXPECT_EQ(said(good + constant("b", wide + field(4, "12345"))),
            at + "b' has 5 bytes, expected 8");
  EXPECT_EQ(said(good + good), at + "a' is there twice, expected once");
  EXPECT_EQ(said(good + constant("\x01", wide)), at + "\\001' has no name or a control character");
  EXPECT_EQ(said(good + constant("b", number(1, 1) + field(2, shape_of({~std::uint64_t{0}})))),
            at + "b' is damaged or has an impossible shape");
  EXPECT_EQ(
      said(good + constant("b", number(1, 2) + field(2, shape_of({std::uint64_t{1} << 62, 1})))),
      at + "b' has an impossible shape");
}

// A table of version 1 with a list of these tensors.
std::string v1_of(const std::string& list, const std::map<std::string, std::string>& more = {}) {
  std::map<std::string, std::string> table = more;
  table[""] = field(1, list);
  return build_table(table);
}

TEST(V1Limits, SlicesAndRank) {
  const auto tensor = [](const std::vector<std::uint64_t>& shape, std::size_t slices) {
    std::string out = field(1, "w") + field(2, shape_of(shape)) + number(3, 1);
    std::string whole;
    for (std::size_t d = 0; d < shape.size(); ++d) whole += field(1, number(2, 0));
    for (std::size_t i = 0; i < slices; ++i) out += field(4, whole);
    return field(1, out);
  };
  EXPECT_NE(problem_of(v1_of(tensor({0}, 4096))).find("has 0 bytes, expected 0 elements of 4"),
            std::string::npos);
  EXPECT_NE(problem_of(v1_of(tensor({0}, 4097)))
                .find(" @ 0] tensor 'w' has 4097 slices, expected at most 4096"),
            std::string::npos);
  std::vector<std::uint64_t> ones(255, 1);
  EXPECT_NE(problem_of(v1_of(tensor(ones, 1))).find("tensor 'w' has impossible shape [1, 1, "),
            std::string::npos);
  ones.pop_back();
  EXPECT_NE(problem_of(v1_of(tensor(ones, 1))).find("leave gaps"), std::string::npos);
  EXPECT_NE(problem_of(v1_of(tensor({3, ~std::uint64_t{1}}, 1)))
                .find("tensor 'w' has impossible shape [3, -2]"),
            std::string::npos);
}

// Every call names itself, the tensor and the file.
TEST(ModelFileErrors, SayWhichCallAskedForWhat) {
  const TempFolder folder;
  const Array values = array_of<float>({2, 2}, {1, 2, 3, 4});
  const std::string path = folder / "m";
  write_safetensors(path, std::vector<NamedView>{{"a", values.view()}, {"b", values.view()}});
  const ModelFile file(path);
  std::byte room[16] = {};
  const std::pair<std::string, std::function<void()>> calls[] = {
      {"info", [&] { file.info("x"); }},
      {"read", [&] { file.read("x"); }},
      {"read_into", [&] { file.read_into("x", room); }},
      {"read_rows", [&] { file.read_rows("x", {}); }},
      {"read_bytes", [&] { file.read_bytes("x"); }},
      {"view", [&] { file.view("x"); }},
  };
  for (const auto& [call, ask] : calls) {
    EXPECT_EQ(thrown<ArgumentError>(ask),
              "[" + call + "] 'x' is not in " + path + ", expected one of: a, b");
  }
  for (const std::size_t bytes : {0U, 15U}) {
    EXPECT_EQ(thrown<ArgumentError>([&] { file.read_into("a", std::span(room).first(bytes)); }),
              message("[read_into] 'a' has 16 bytes, expected memory of as many, not of ", bytes));
  }
  file.read_into("b", room);
  EXPECT_EQ(std::memcmp(room, values.data(), sizeof room), 0);
}

// An element type that is listed and not read, whoever asks for it; as bytes it is.
TEST(ModelFileErrors, OfElementTypesThatAreNotRead) {
  const TempFolder folder;
  const std::string header = R"({"c":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}})";
  std::string bytes;
  put_fixed(&bytes, std::uint64_t{header.size()});
  write_raw(folder / "m", bytes + header + "abcd");
  const ModelFile file(folder / "m");
  std::byte room[4] = {};
  const std::function<void()> calls[] = {
      [&] { file.read("c"); }, [&] { file.read_into("c", room); },
      [&] { file.read_rows("c", [](auto&&...) {}); }, [&] { file.view("c"); }};
  for (const auto& call : calls) {
    EXPECT_EQ(thrown<UnsupportedError>(call),
              "[read] tensor 'c' has element type int16, expected one of OpenRNN's dtypes");
  }
  EXPECT_EQ(file.read_bytes("c"), "abcd");
}

// Bytes that are no bools, with the element's number, from each call.
TEST(ModelFileErrors, OfBytesThatAreNoBools) {
  const TempFolder folder;
  const std::string header = R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                             R"("c":{"dtype":"BOOL","shape":[2,2],"data_offsets":[3,7]}})";
  std::string bytes;
  put_fixed(&bytes, std::uint64_t{header.size()});
  write_raw(folder / "m", bytes + header + "xyz\1\0\1\xfe"s);
  const ModelFile file(folder / "m");
  std::byte room[4] = {};
  const std::string said = message("[", folder / "m", " @ ", 8 + header.size() + 3,
                                   "] element 3 of tensor 'c' is 254, expected 0 or 1");
  EXPECT_EQ(thrown<FormatError>([&] { file.read("c"); }), said);
  EXPECT_EQ(thrown<FormatError>([&] { file.read_into("c", room); }), said);
  EXPECT_EQ(thrown<FormatError>([&] { file.view("c"); }), said);
  EXPECT_EQ(thrown<FormatError>([&] { file.read_rows("c", [](auto&&...) {}); }), said);
  EXPECT_EQ(file.read_bytes("c"), "\1\0\1\xfe"s);
}

// Numbers of a graph past 32 bits.
TEST(GraphLimits, WideNumbers) {
  const TempFolder folder;
  const std::uint64_t wide = (std::uint64_t{1} << 40) + 3;
  write_raw(folder / "m", constant("shape", number(1, 9) + field(2, shape_of({wide, 0}))) +
                              constant("value", number(1, 9) + field(2, shape_of({2})) +
                                                    number(10, wide) + number(10, ~wide)));
  const ModelFile file(folder / "m");
  EXPECT_EQ(file.info("shape").shape, (Shape{static_cast<std::int64_t>(wide), 0}));
  const Array values = file.read("value");
  EXPECT_EQ(values.as<std::int64_t>()[0], static_cast<std::int64_t>(wide));
  EXPECT_EQ(values.as<std::int64_t>()[1], static_cast<std::int64_t>(~wide));
}

// Some file systems cannot sync a folder; that a file is not synced is an error.
TEST(FileErrors, AFolderThatCannotBeSynced) {
  const TempFolder folder;
  const std::string own = std::filesystem::path(folder.path()).filename();
  const auto write_with = [&](const std::string& name, int error) {
    const testing::WatchFiles watch([&](const std::string& call, const std::string& file) {
      return call == "sync" && file == name ? error : 0;
    });
    write_file_atomically(folder / "f", "x");
  };
  EXPECT_NO_THROW(write_with(own, EINVAL));
  EXPECT_EQ(thrown<IoError>([&] { write_with(own, EIO); }),
            "[sync] " + folder.path() + ": Input/output error");
  for (const int error : {EINVAL, EIO}) {
    EXPECT_TRUE(thrown<IoError>([&] {
                  write_with("f.new", error);
                }).starts_with("[sync] " + folder / "f.new" + ": "));
  }
}

}  // namespace
}  // namespace openrnn::formats
