// What is said of a bundle, a state file or an event file that cannot be used: every figure, and
// where in which file it is.

#include <gtest/gtest.h>
#include <openrnn/formats.h>
#include <unistd.h>

#include "base/message.h"
#include "formats/checkpoint_state.h"
#include "formats/coding.h"
#include "formats/errors/event_record.h"
#include "formats/event_file.h"
#include "formats/objects/object_graph.h"
#include "formats/tf_dtype.h"
#include "support/expect_error.h"
#include "support/raw_bundle.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

// 'first' of 4 bytes, and 'w' of 12 behind it.
struct TwoTensors {
  TwoTensors() {
    raw.add("first", {9});
    raw.add("w", {1, 2, 3});
  }
  BundleEntry& w() { return raw.entries.at("w"); }
  template <class E, class Call>
  void expect(const Call& call, const std::string& whole, TensorBundleOptions options = {}) {
    raw.write(folder / "m");
    EXPECT_EQ(thrown<E>([&] { call(TensorBundleReader(folder / "m", options)); }), whole);
  }
  std::string index() const { return "[" + folder / "m.index" + " @ 0] "; }
  const TempFolder folder;
  RawBundle raw;
};

const auto kNothing = [](const TensorBundleReader&) {};

TEST(BundleErrors, SayWhichCallAskedForWhat) {
  TwoTensors two;
  const std::string rest = "'x' is not in " + two.folder / "m" + ", expected one of: 'first', 'w'";
  const auto refused = [&](const std::string& call, const auto& ask) {
    two.expect<ArgumentError>(ask, "[" + call + "] " + rest);
  };
  refused("read", [](const TensorBundleReader& reader) { reader.read("x"); });
  refused("info", [](const TensorBundleReader& reader) { reader.info("x"); });
  refused("read_strings", [](const TensorBundleReader& reader) { reader.read_strings("x"); });
  refused("read_value", [](const TensorBundleReader& reader) { reader.read_value("x"); });
  refused("read_strings", [](const TensorBundleReader& reader) { reader.read_string("x"); });
  two.expect<TypeError>([](const TensorBundleReader& reader) { reader.read_strings("w"); },
                        "[read_strings] tensor 'w' has element type float32, expected string");
}

TEST(BundleErrors, SayWhichBytesAreWrong) {
  TwoTensors two;
  const std::uint32_t good = two.w().crc;
  two.w().crc = good ^ 6u;
  const std::string what =
      message("[", two.folder / "m.data-00000-of-00001", " @ 4] tensor 'w' has checksum ", good,
              ", expected ", good ^ 6u);
  two.expect<FormatError>([](const TensorBundleReader& reader) { reader.read("w"); }, what);
  two.expect<FormatError>([](const TensorBundleReader& reader) { reader.verify(); }, what);
  two.w().crc = good;
  two.w().offset = 5;
  two.expect<FormatError>(kNothing, "[" + two.folder / "m.data-00000-of-00001" +
                                        " @ 16] the file ends here, expected 12 bytes of tensor "
                                        "'w' at byte 5");
  two.w().offset = 3;
  two.expect<FormatError>(kNothing, two.index() +
                                        "tensor 'w' begins at byte 3 of data file 0, inside "
                                        "tensor 'first', expected tensors apart");
  two.w().offset = 4;
  two.w().shape = {2, 2};
  two.expect<FormatError>(kNothing,
                          two.index() + "tensor 'w' has 12 bytes, expected 4 elements of 4 bytes");
  two.w().shape = {2, -2};
  two.expect<FormatError>(kNothing, two.index() + "tensor 'w' has the impossible shape [2, -2]");
  two.w().shape = {3};
  two.w().shard = 2;
  two.expect<FormatError>(kNothing,
                          two.index() + "tensor 'w' is in data file 2, expected one of 1");
}

TEST(BundleErrors, SayWhatTheHeaderHas) {
  TwoTensors two;
  two.raw.header = "\x08\x01\x10\x02"s;
  two.expect<UnsupportedError>(kNothing, "[TensorBundleReader] " + two.folder / "m.index" +
                                             " is big-endian (2), expected little-endian (0)");
  two.raw.header = "\x08\x01\x1a\x02\x10\x07"s;
  two.expect<UnsupportedError>(kNothing, "[TensorBundleReader] " + two.folder / "m.index" +
                                             " asks for a reader of version 7, expected at most 1");
}

// A string tensor 's' of these bytes behind four others; without checksums where they are not
// wanted.
TEST(BundleErrors, OfStrings) {
  std::uint32_t crc = 0;
  const std::string good = encode_strings({"ab", "cde"}, &crc);
  const auto read = [&](const std::string& data, std::int64_t count, bool verify) {
    TwoTensors two;
    two.raw.entries.erase("w");
    BundleEntry& entry = two.raw.entries["s"];
    entry.dtype = kTfString;
    entry.shape = {count};
    entry.offset = 4;
    entry.size = static_cast<std::int64_t>(data.size());
    entry.crc = mask_crc(crc);
    two.raw.data.resize(4);
    two.raw.data += data;
    two.raw.write(two.folder / "m");
    const TensorBundleReader reader(two.folder / "m", {.verify_checksums = verify});
    const std::string path = two.folder / "m.data-00000-of-00001";
    try {
      return reader.read_strings("s").values.back();
    } catch (const FormatError& error) {
      const std::string start = "[" + path + " @ 4] ", what = error.what();
      EXPECT_TRUE(what.starts_with(start)) << what;
      return what.substr(start.size());
    }
  };
  const std::string of_s = "strings of tensor 's': ";
  EXPECT_EQ(read(good, 2, true), "cde");
  EXPECT_EQ(read(good, 12, true), of_s + "11 bytes, expected the lengths of 12 strings");
  EXPECT_EQ(read(good.substr(0, 9), 2, true), of_s + "a string of 3 bytes is cut short");
  EXPECT_EQ(read(good + "xy", 2, true), of_s + "2 bytes after the last string, expected none");
  EXPECT_EQ(read(good.substr(0, 5), 2, true), of_s + "the checksum of the lengths is cut short");
  std::uint32_t stored = 0;
  std::memcpy(&stored, good.data() + 2, sizeof stored);
  std::string wrong = good;
  wrong[2] = static_cast<char>(wrong[2] ^ 1);
  EXPECT_EQ(read(wrong, 2, true),
            of_s + message("the lengths have checksum ", stored, ", expected ", stored ^ 1u));
  EXPECT_EQ(read(wrong, 2, false), "cde");
}

TEST(BundleErrors, OfSlices) {
  TwoTensors two;
  const TensorSlice first{{0, 1}, {0, -1}}, second{{1, 1}, {0, -1}};
  two.raw.add(slice_key("big", first), {1, 2});
  two.raw.add(slice_key("big", second), {3, 4}).shape = {1, 2};
  BundleEntry& whole = two.raw.entries["big"];
  whole.dtype = 1;
  whole.shape = {2, 2};
  whole.slices = {first, second};
  const std::string start = two.index() + "partitioned tensor 'big' has ";
  two.expect<FormatError>(kNothing, start +
                                        "a slice of shape [2] and type float32, expected "
                                        "[1, 2] and float32");
  two.raw.entries[slice_key("big", first)].shape = {1, 2};
  whole.dtype = 3;
  two.expect<FormatError>(kNothing, start +
                                        "a slice of shape [1, 2] and type float32, expected "
                                        "[1, 2] and int32");
  whole.dtype = 20;
  two.expect<FormatError>(kNothing, start + "element type resource, expected one of fixed width");
  whole.dtype = 1;
  whole.shape = {2, -2};
  two.expect<FormatError>(kNothing, start + "slices that overlap, leave gaps or lie outside");
  whole.slices = {{{0, -1}, {0, -1}}};
  whole.shape = {INT64_MAX, 5};
  two.expect<FormatError>(kNothing, start + "the impossible shape [9223372036854775807, 5]");
  whole.slices = {first, second};
  whole.shape = {2, 2};
  two.raw.entries.erase(slice_key("big", second));
  two.expect<FormatError>(kNothing,
                          two.index() + "partitioned tensor 'big' lacks one of its slices");
}

// Slices along the second dimension, the later one first: each is compared with those before it.
TEST(BundleErrors, OfSlicesThatOverlap) {
  const auto opened = [](const std::vector<TensorSlice>& slices) {
    TwoTensors two;
    BundleEntry& whole = two.raw.entries["big"];
    whole.dtype = 1;
    whole.shape = {2, 4};
    whole.slices = slices;
    for (const TensorSlice& slice : slices) {
      const Shape shape = slice_shape(whole.shape, slice);
      std::vector<float> values(static_cast<std::size_t>(shape[0] * shape[1]));
      for (float& value : values) value = static_cast<float>(&value - values.data()) + 1;
      two.raw.add(slice_key("big", slice), values).shape = shape;
    }
    two.raw.write(two.folder / "m");
    const Array big = TensorBundleReader(two.folder / "m").read("big");
    return std::vector<float>(big.as<float>().begin(), big.as<float>().end());
  };
  const TensorSlice left{{0, -1}, {0, 2}}, right{{0, -1}, {2, 2}}, middle{{0, -1}, {1, 2}};
  const TensorSlice top{{0, 1}, {0, -1}}, below{{1, 1}, {0, -1}};
  EXPECT_EQ(opened({left, right}), (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(opened({right, left}), (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(opened({below, top}), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  using Slices = std::vector<TensorSlice>;
  for (const Slices& slices : {Slices{left, middle}, Slices{middle, left}, Slices{right, middle},
                               Slices{middle, right}, Slices{top, left}, Slices{left, left}}) {
    EXPECT_NE(error_of<FormatError>([&] {
                opened(slices);
              }).find("has slices that overlap, leave gaps or lie outside"),
              std::string::npos);
  }
}

TEST(BundleErrors, OfTheWriter) {
  const TempFolder folder;
  TensorBundleWriter writer(folder / "m");
  writer.add("x", array_of<float>({1}, {2}));
  EXPECT_EQ(thrown<ArgumentError>([&] { writer.add("x", array_of<float>({1}, {2})); }),
            "[add] 'x' was added before, expected distinct names");
  EXPECT_EQ(thrown<ArgumentError>([&] { writer.add("a\n", array_of<float>({1}, {2})); }),
            "[add] the tensor's name a\\012 is not UTF-8 or holds a control character, expected "
            "neither");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              writer.add("s", StringTensor{{2, 2}, {"a", "b", "c"}});
            }),
            "[add] 's' has 3 strings, expected 4 for the shape [2, 2]");
  writer.finish();
  EXPECT_EQ(thrown<StateError>([&] { writer.add("y", array_of<float>({1}, {2})); }),
            "[add] 'y' after finish() or a failure");
}

// By number, name and bytes of an element, as TensorFlow's types.proto has them.
TEST(TfDtypes, EveryOne) {
  const std::tuple<int, const char*, std::size_t> types[] = {
      {1, "float32", 4},        {2, "float64", 8},       {3, "int32", 4},
      {4, "uint8", 1},          {5, "int16", 2},         {6, "int8", 1},
      {7, "string", 0},         {8, "complex64", 8},     {9, "int64", 8},
      {10, "bool", 1},          {11, "qint8", 1},        {12, "quint8", 1},
      {13, "qint32", 4},        {14, "bfloat16", 2},     {15, "qint16", 2},
      {16, "quint16", 2},       {17, "uint16", 2},       {18, "complex128", 16},
      {19, "float16", 2},       {20, "resource", 0},     {21, "variant", 0},
      {22, "uint32", 4},        {23, "uint64", 8},       {24, "float8_e5m2", 1},
      {25, "float8_e4m3fn", 1}, {26, "unknown (26)", 0}, {0, "unknown (0)", 0},
      {-1, "unknown (-1)", 0},
  };
  for (const auto& [number, name, bytes] : types) {
    EXPECT_EQ(tf_dtype_name(number), name);
    EXPECT_EQ(tf_dtype_size(number), bytes) << name;
    const std::optional<DType> dtype = from_tf_dtype(number);
    if (!dtype) continue;
    EXPECT_EQ(dtype_name(*dtype), name);
    EXPECT_EQ(dtype_size(*dtype), bytes) << name;
    EXPECT_EQ(to_tf_dtype(*dtype), number);
  }
}

TEST(ObjectGraphErrors, SayWhere) {
  // The second message begins at byte 4, its child at 6.
  const std::string negative =
      "\x0a\x02\x0a\x00\x0a\x0d\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s;
  EXPECT_EQ(thrown<FormatError>([&] { decode_object_graph("f", negative); }),
            "[f @ 8] an object has the number -1");
  const std::string broken = "\x0a\x02\x0a\x00\x0a\x03\x12\x01\x0a"s;
  EXPECT_TRUE(thrown<FormatError>([&] {
                decode_object_graph("f", broken);
              }).starts_with("[f @ 8] the object graph is broken: "));
  ObjectGraph graph;
  graph.nodes.resize(2);
  graph.nodes[1].children = {{5, "a"}, {3, "b"}};
  const std::string bytes = encode_object_graph(graph);
  EXPECT_EQ(thrown<FormatError>([&] { decode_object_graph("f", bytes); }),
            message("[f @ ", bytes.size(), "] the object graph names the object 5, and has 2"));
  graph.nodes[1].children = {{0, "a"}, {1, "a"}};
  EXPECT_EQ(thrown<FormatError>([&] { decode_object_graph("f", encode_object_graph(graph)); }),
            "[f @ 0] the object 1 has two children 'a'");
}

TEST(StateFileErrors, SayWhichFieldAndWhere) {
  const auto said = [](const std::string& text) {
    return thrown<FormatError>([&] { decode_checkpoint_state("d", text); });
  };
  const std::string start = "[d/checkpoint @ ";
  EXPECT_EQ(said("last_preserved_timestamp: 5x"),
            start + "26] last_preserved_timestamp is '5x', expected a number");
  EXPECT_EQ(said("a: 1\nall_model_checkpoint_timestamps: \"5\""),
            start + "38] all_model_checkpoint_timestamps is '5', expected a number");
  EXPECT_EQ(said("all_model_checkpoint_paths: \"\""),
            start +
                "28] all_model_checkpoint_paths is '', expected a quoted path without zero "
                "bytes");
  EXPECT_EQ(said("model_checkpoint_path: m"),
            start + "23] model_checkpoint_path is 'm', expected a quoted path without zero bytes");
  EXPECT_EQ(said("a: 1"),
            start + "0] model_checkpoint_path is missing, expected the latest checkpoint");
  EXPECT_EQ(said("a: \"\\q\""), start + "6] an escape that is not known: \\q");
  const std::string escapes = "/\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\\'\\?";
  EXPECT_EQ(decode_checkpoint_state(".", "model_checkpoint_path: '" + escapes + "'").latest,
            "/\a\b\f\n\r\t\v\\\"'?");
}

TEST(EventFiles, TheirNamesAndTimes) {
  const TempFolder folder;
  EventWriter writer(folder.path());
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const std::string name = writer.path().substr(folder.path().size() + 1);
  const std::string start = "events.out.tfevents.";
  ASSERT_TRUE(name.starts_with(start)) << name;
  EXPECT_GT(std::stoll(name.substr(start.size())), 1'600'000'000) << name;
  EXPECT_NE(name.find(message(".", host, ".", ::getpid(), ".")), std::string::npos) << name;
  double time = 0.0;
  std::memcpy(&time, read_file(writer.path()).data() + 13, sizeof time);
  EXPECT_GT(time, 1.6e9);
  EXPECT_EQ(thrown<ArgumentError>([&] { writer.add_scalar("a\n", 1, 1.0); }),
            "[add_scalar] the tag a\\012 is not UTF-8 or holds a control character, expected "
            "neither");
  // Its float32 is what is stored.
  writer.add_scalar("a", 1, 0.1);
  writer.flush();
  EXPECT_EQ(read_scalar_events(writer.path()).at(0).value, static_cast<double>(0.1f));
}

TEST(EventFiles, ErrorsSayWhere) {
  const auto said = [](const std::string& bytes) {
    return thrown<FormatError>([&] { decode_scalar_events("f", bytes); });
  };
  const std::string good = event_record("\x10\x07");
  std::uint32_t size_crc = 0, data_crc = 0;
  std::memcpy(&size_crc, good.data() + 8, 4);
  std::memcpy(&data_crc, good.data() + 14, 4);
  std::string bad = good;
  bad[8] = static_cast<char>(bad[8] ^ 1);
  EXPECT_EQ(said(good + bad),
            message("[f @ 18] a record has checksum ", size_crc, ", expected ", size_crc ^ 1u));
  bad = good;
  bad[14] = static_cast<char>(bad[14] ^ 1);
  EXPECT_EQ(said(good + bad),
            message("[f @ 30] a record has checksum ", data_crc, ", expected ", data_crc ^ 1u));
  const std::string steering = "\x2a\x0a\x0a\x08\x0a\x01\x1b\x15\0\0\0\0"s;
  EXPECT_EQ(said(good + event_record(steering)),
            "[f @ 30] the tag \\033 is not UTF-8 or holds a control character, expected neither");
}

}  // namespace
}  // namespace openrnn::formats
