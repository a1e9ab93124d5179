#include "formats/event_file.h"

#include <gtest/gtest.h>
#include <openrnn/formats.h>

#include <algorithm>

#include "base/crc/crc32c.h"
#include "formats/coding.h"
#include "formats/errors/event_record.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// The first record with its time, which is now, taken out of the comparison by reading its tail.
constexpr std::size_t kFirstRecordBytes = 12 + 24 + 4;
const char* const kScalarRecord =
    "1a00000000000000129bd82d09000000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a";

TEST(EventFile, BytesAsTensorBoardExpectsThem) {
  const TempFolder folder;
  EventWriter writer(folder.path());
  writer.add_scalar("loss", 7, 0.5, 2.0);
  writer.flush();
  const std::string bytes = read_file(writer.path());
  ASSERT_GT(bytes.size(), kFirstRecordBytes);
  EXPECT_EQ(bytes.substr(0, 13), from_hex("1800000000000000a37f4b2209"));
  EXPECT_EQ(bytes.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
  EXPECT_EQ(bytes.substr(kFirstRecordBytes), from_hex(kScalarRecord));
  EXPECT_TRUE(contains(writer.path(), folder / "events.out.tfevents."));
}

TEST(EventFile, RoundTripAndTwoWritersInOneSecond) {
  const TempFolder folder;
  EventWriter one(folder.path()), two(folder.path());
  EXPECT_NE(one.path(), two.path());
  one.add_scalar("a", 0, -1.25, 10.5);
  one.add_scalar("b", std::int64_t{1} << 40, 3, 11.5);
  one.add_scalar("b", -1, 4);
  one.flush();
  const std::vector<ScalarEvent> found = read_scalar_events(one.path());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].tag, "a");
  EXPECT_EQ(found[0].step, 0);
  EXPECT_EQ(found[0].value, -1.25);
  EXPECT_EQ(found[0].wall_time, 10.5);
  EXPECT_EQ(found[1].step, std::int64_t{1} << 40);
  EXPECT_EQ(found[2].step, -1);
  EXPECT_GT(found[2].wall_time, 1.6e9);
  EXPECT_TRUE(read_scalar_events(two.path()).empty());
}

// A restarted container may have the process number and count of an earlier one.
TEST(EventFile, NoFileIsWrittenOver) {
  const TempFolder folder;
  const std::string one = EventWriter(folder.path()).path();
  const std::size_t end = one.rfind('.');
  const std::string start = folder / "events.out.tfevents.";
  const std::string middle =
      one.substr(one.find('.', start.size()), end - one.find('.', start.size()));
  const std::int64_t second = std::stoll(one.substr(start.size()));
  const int count = std::stoi(one.substr(end + 1));
  std::vector<std::string> taken;
  for (std::int64_t at = second; at < second + 30; ++at) {
    for (int next = count + 1; next < count + 4; ++next) {
      taken.push_back(start + std::to_string(at) + middle + "." + std::to_string(next));
      write_raw(taken.back(), "another's");
    }
  }
  const std::string two = EventWriter(folder.path()).path();
  EXPECT_EQ(std::count(taken.begin(), taken.end(), two), 0) << two;
  for (const std::string& path : taken) EXPECT_EQ(read_file(path), "another's");
}

TEST(EventFile, DestructorFlushes) {
  const TempFolder folder;
  std::string path;
  {
    EventWriter writer(folder.path());
    writer.add_scalar("a", 1, 2);
    path = writer.path();
    EXPECT_TRUE(read_scalar_events(path).empty());
  }
  EXPECT_EQ(read_scalar_events(path).size(), 1u);
}

TEST(EventFile, CutAtAnyByteEndsQuietlyAndFlippedBitsAreFound) {
  const TempFolder folder;
  const std::string record = from_hex(kScalarRecord);
  for (std::size_t size = 0; size < record.size(); ++size) {
    write_raw(folder / "cut", record + record.substr(0, size));
    EXPECT_EQ(read_scalar_events(folder / "cut").size(), 1u) << size;
  }
  for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
    std::string flipped = record;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_raw(folder / "flipped", flipped + record);
    EXPECT_MESSAGE(FormatError, read_scalar_events(folder / "flipped"), "a record has checksum");
  }
}

TEST(EventFile, RecordThatIsNoEvent) {
  const TempFolder folder;
  // "hello" in a right frame.
  write_raw(folder / "f", from_hex("0500000000000000eab2043e68656c6c6fbb1f1c19"));
  EXPECT_MESSAGE(FormatError, read_scalar_events(folder / "f"), "f @ 12] a record is not an event");
}

TEST(EventFile, PlacesThatAreNotThere) {
  const TempFolder folder;
  EXPECT_MESSAGE(IoError, EventWriter(folder / "no"), "No such file or directory");
  EXPECT_MESSAGE(IoError, read_scalar_events(folder / "no"), "[open]");
}

TEST(EventFile, TagsThatAreNoText) {
  const TempFolder folder;
  EventWriter writer(folder.path());
  for (const std::string tag : {"a\xff", "esc\x1b[2J", "line\n"}) {
    EXPECT_MESSAGE(ArgumentError, writer.add_scalar(tag, 1, 1.0),
                   "is not UTF-8 or holds a control");
  }
  writer.add_scalar("good", 1, 1.0);
  writer.flush();
  EXPECT_EQ(read_scalar_events(writer.path()).size(), 1u);
  // The same record with a tag that steers a terminal.
  std::string bytes = read_file(writer.path());
  const std::size_t at = bytes.find("good");
  bytes[at] = '\x1b';
  const std::size_t header = bytes.find("brain.Event:2") + 13 + 4;
  const std::string data = bytes.substr(header + 12, bytes.size() - header - 16);
  bytes.resize(bytes.size() - 4);
  put_fixed(&bytes, mask_crc(crc32c(data)));
  write_raw(folder / "bad", bytes);
  EXPECT_MESSAGE(FormatError, read_scalar_events(folder / "bad"), "the tag \\033ood is not UTF-8");
}

std::string field(char tag, const std::string& bytes) {
  return std::string(1, static_cast<char>(tag << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
std::string scalar(const std::string& tag, float value) {
  std::string out = field(1, tag) + "\x15";
  put_fixed(&out, value);
  return field(1, out);
}

// What TensorBoard's other writers put beside scalars is passed over.
TEST(EventFile, SummariesOfEveryKind) {
  const auto shown = [](const std::string& bytes) {
    std::string out;
    for (const ScalarEvent& event : decode_scalar_events("f", bytes)) {
      out += event.tag + "@" + std::to_string(event.step) + "=" +
             std::to_string(static_cast<int>(event.value)) + " ";
    }
    return out;
  };
  const std::string image = field(1, field(1, "image") + field(4, "png"));
  const std::string zero = scalar("z", 0), one = scalar("o", 1);
  EXPECT_EQ(shown(event_record(field(5, image))), "");
  EXPECT_EQ(shown(event_record(field(5, field(1, field(1, "tag alone"))))), "");
  EXPECT_EQ(shown(event_record(field(5, zero))), "z@0=0 ");
  EXPECT_EQ(shown(event_record(field(5, field(1, std::string("\x15\0\0\0\x40", 5))))), "@0=2 ");
  // The step is of the whole event, wherever it stands in it, and of no other.
  EXPECT_EQ(
      shown(event_record(field(5, one + image + zero) + "\x10\x07") + event_record(field(5, one))),
      "o@7=1 z@7=0 o@0=1 ");
  EXPECT_EQ(shown(event_record(field(5, one) + field(5, zero) + field(3, "version"))),
            "o@0=1 z@0=0 ");
  EXPECT_EQ(shown(event_record("")), "");
  EXPECT_EQ(shown(""), "");
  EXPECT_MESSAGE(FormatError, shown(event_record("\x2a\x05")), "f @ 12] a record is not an event");
  EXPECT_MESSAGE(FormatError, shown(event_record("") + event_record("\xff")),
                 "f @ 28] a record is not an event");
}

}  // namespace
}  // namespace openrnn::formats
