// WAVE files: every coding, chunks in any order and of odd sizes, what is refused.
#include "formats/wav/wav.h"

#include <gtest/gtest.h>

#include "formats/coding.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

using namespace std::string_literals;

std::string chunk(const std::string& name, const std::string& body) {
  std::string out = name;
  put_fixed(&out, static_cast<std::uint32_t>(body.size()));
  return out + body + (body.size() % 2 ? "\x55" : "");
}

std::string format(std::uint16_t coding, std::uint16_t bits, std::uint16_t channels = 1,
                   const std::string& more = "") {
  std::string body;
  put_fixed(&body, coding);
  put_fixed(&body, channels);
  put_fixed(&body, std::uint32_t{8000});
  put_fixed(&body, std::uint32_t{0});
  put_fixed(&body, std::uint16_t{0});
  put_fixed(&body, bits);
  return chunk("fmt ", body + more);
}

std::string riff(const std::string& chunks) {
  return "RIFF" + std::string(4, '\0') + "WAVE" + chunks;
}

Array read(const std::string& bytes) { return read_wav(MemorySource("a.wav", bytes)); }

std::vector<float> samples(const std::string& bytes) {
  const Array array = read(bytes);
  const auto values = array.as<float>();
  return {values.begin(), values.end()};
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string out;
  for (const T value : values) put_fixed(&out, value);
  return out;
}

constexpr std::uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

TEST(Wav, EveryCoding) {
  const float least = 1.0F / 8388608.0F;
  const std::tuple<std::uint16_t, std::uint16_t, std::string, std::vector<float>> cases[] = {
      {kPcm, 8, "\0\x80\xff\x7f"s, {-1.0F, 0.0F, 127.0F / 128.0F, -1.0F / 128.0F}},
      {kPcm, 16, "\0\x80\xff\x7f\xff\xff"s, {-1.0F, 32767.0F / 32768.0F, -1.0F / 32768.0F}},
      {kPcm, 24, "\0\0\x80\xff\xff\x7f\1\0\0"s, {-1.0F, 1.0F - least, least}},
      {kPcm, 32, "\0\0\0\x80\0\0\0\x40"s, {-1.0F, 0.5F}},
      {kFloat, 32, bytes_of<float>({-2.5F, 0.25F}), {-2.5F, 0.25F}},
      {kFloat, 64, bytes_of<double>({-2.5, 0.25}), {-2.5F, 0.25F}},
  };
  for (const auto& [coding, bits, data, expected] : cases) {
    EXPECT_EQ(samples(riff(format(coding, bits) + chunk("data", data))), expected) << bits;
  }
  for (const auto& [coding, bits] : {std::pair<std::uint16_t, std::uint16_t>{kPcm, 64},
                                     {kPcm, 12},
                                     {kPcm, 0},
                                     {kFloat, 16},
                                     {kFloat, 8},
                                     {2, 16},
                                     {kExtensible, 16}}) {
    EXPECT_MESSAGE(
        UnsupportedError, read(riff(format(coding, bits) + chunk("data", ""))),
        "[read_wav] a.wav has coding " + std::to_string(coding) + " of " + std::to_string(bits));
  }
}

// The coding is then at byte 24, if the chunk reaches there.
TEST(Wav, Extensible) {
  const std::string data = chunk("data", bytes_of<float>({0.5F}));
  for (const std::size_t rest : {0U, 14U}) {
    const std::string more = std::string(8, '\0') + "\3\0"s + std::string(rest, '\0');
    EXPECT_EQ(samples(riff(format(kExtensible, 32, 1, more) + data)), std::vector<float>{0.5F});
  }
  EXPECT_MESSAGE(UnsupportedError,
                 read(riff(format(kExtensible, 32, 1, std::string(8, '\0')) + data)),
                 "has coding 65534");
  // Of another coding it says nothing.
  EXPECT_EQ(samples(riff(format(kFloat, 32, 1, std::string(8, '\0') + "\1\0"s) + data)),
            std::vector<float>{0.5F});
}

TEST(Wav, ChunksAndFrames) {
  const std::string two = chunk("data", "\0\0\0\x40\0\xc0\0\0"s);
  const std::string all = riff(chunk("LIST", "abc") + format(kPcm, 16, 2) + chunk("fact", "") +
                               chunk("odd ", "x") + two + chunk("data", "more"));
  const Array array = read(all);
  EXPECT_EQ(array.shape(), (Shape{2, 2}));
  EXPECT_EQ(samples(all), (std::vector<float>{0, 0.5F, -0.5F, 0}));
  EXPECT_EQ(read(riff(format(kPcm, 16, 3) + chunk("data", ""))).shape(), (Shape{0, 3}));
  // The last one of two.
  EXPECT_EQ(read(riff(format(kPcm, 16, 4) + format(kPcm, 8, 1) + chunk("data", "abcd"))).shape(),
            (Shape{4, 1}));
}

TEST(Wav, WhatIsRefused) {
  const std::string good = riff(format(kPcm, 16, 2) + chunk("data", "abcd"));
  EXPECT_NO_THROW(read(good));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(read(good.substr(0, size)), FormatError) << size;
  }
  std::string other = good;
  other[3] = 'X';
  EXPECT_MESSAGE(FormatError, read(other), "this is no WAVE file");
  other = good;
  other[8] = 'A';
  EXPECT_MESSAGE(FormatError, read(other), "this is no WAVE file");
  EXPECT_MESSAGE(FormatError, read(riff(chunk("data", "abcd") + format(kPcm, 16))),
                 "[a.wav @ 12] samples before the chunk 'fmt '");
  EXPECT_MESSAGE(FormatError, read(riff(format(kPcm, 16, 0) + chunk("data", "abcd"))),
                 "[a.wav @ 20] the file has no channels");
  EXPECT_MESSAGE(FormatError, read(riff(format(kPcm, 16, 2) + chunk("data", "abcdef"))),
                 "[a.wav @ 44] there are 6 bytes of samples, expected whole frames of 4");
  EXPECT_MESSAGE(FormatError, read(riff(chunk("fmt ", std::string(15, '\0')) + chunk("data", ""))),
                 "[a.wav @ 20] the chunk 'fmt ' has 15 bytes, expected at least 16");
  std::string large = good;
  large[good.size() - 8] = 5;  // the size of the last chunk
  EXPECT_MESSAGE(FormatError, read(large), "[a.wav @ 36] a chunk has 5 bytes, expected at most 4");
}

}  // namespace
}  // namespace openrnn::formats
