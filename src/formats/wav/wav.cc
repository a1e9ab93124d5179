#include "formats/wav/wav.h"

#include <cstring>
#include <optional>

#include "base/message.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kRiffBytes = 12, kChunkBytes = 8, kFormatBytes = 16;
constexpr std::uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

struct WavFormat {
  std::uint16_t coding = 0, channels = 0, bits = 0;
  std::size_t sample_bytes() const { return bits / 8; }
};

template <class T>
T field_at(const ByteSource& file, std::uint64_t offset) {
  T value;
  file.read_at(offset, &value, sizeof value);
  return value;
}

WavFormat read_format(const ByteSource& file, std::uint64_t offset, std::uint64_t size) {
  constexpr std::uint64_t kSubformat = 24;
  if (size < kFormatBytes) {
    throw FormatError(
        file.path(), offset,
        message("the chunk 'fmt ' has ", size, " bytes, expected at least ", kFormatBytes));
  }
  WavFormat format{field_at<std::uint16_t>(file, offset), field_at<std::uint16_t>(file, offset + 2),
                   field_at<std::uint16_t>(file, offset + 14)};
  if (format.coding == kExtensible && size >= kSubformat + sizeof format.coding) {
    format.coding = field_at<std::uint16_t>(file, offset + kSubformat);
  }
  const bool integers = format.coding == kPcm && (format.bits == 8 || format.bits == 16 ||
                                                  format.bits == 24 || format.bits == 32);
  const bool floats = format.coding == kFloat && (format.bits == 32 || format.bits == 64);
  if (!integers && !floats) {
    throw UnsupportedError(message("[read_wav] ", file.path(), " has coding ", format.coding,
                                   " of ", format.bits, " bits, expected integers of 8 to 32 bits ",
                                   "or floating point of 32 or 64"));
  }
  if (format.channels > 0) return format;
  throw FormatError(file.path(), offset, "the file has no channels, expected at least one");
}

float sample_at(const WavFormat& format, const char* at) {
  if (format.coding == kFloat && format.bits == 32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (format.coding == kFloat) {
    double value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<float>(value);
  }
  // Those of 8 bits have no sign.
  if (format.bits == 8) {
    return static_cast<float>(static_cast<unsigned char>(*at) - 128) / 128.0F;
  }
  // At the top of 32 bits every width has the same scale.
  std::uint32_t bits = 0;
  std::memcpy(reinterpret_cast<char*>(&bits) + sizeof bits - format.sample_bytes(), at,
              format.sample_bytes());
  return static_cast<float>(static_cast<std::int32_t>(bits) / 2147483648.0);
}

Array read_samples(const ByteSource& file, const WavFormat& format, std::uint64_t offset,
                   std::uint64_t size) {
  const std::uint64_t frame = format.channels * format.sample_bytes();
  if (size % frame != 0) {
    throw FormatError(
        file.path(), offset,
        message("there are ", size, " bytes of samples, expected whole frames of ", frame));
  }
  const std::string bytes = file.read_string(offset, size);
  Array samples(DType::kFloat32, {static_cast<std::int64_t>(size / frame), format.channels});
  const auto to = samples.as<float>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = sample_at(format, bytes.data() + i * format.sample_bytes());
  }
  return samples;
}

}  // namespace

Array read_wav(const ByteSource& file) {
  const std::string head = file.read_string(0, kRiffBytes);
  if (!head.starts_with("RIFF") || !head.ends_with("WAVE")) {
    throw FormatError(file.path(), 0, "this is no WAVE file, expected RIFF with WAVE");
  }
  std::optional<WavFormat> format;
  for (std::uint64_t at = kRiffBytes;;) {
    const std::string name = file.read_string(at, 4);
    const std::uint64_t size = field_at<std::uint32_t>(file, at + 4), body = at + kChunkBytes;
    if (size > file.size() - body) {
      throw FormatError(
          file.path(), at,
          message("a chunk has ", size, " bytes, expected at most ", file.size() - body));
    }
    if (name == "fmt ") {
      format = read_format(file, body, size);
    } else if (name == "data") {
      if (!format) throw FormatError(file.path(), at, "samples before the chunk 'fmt '");
      return read_samples(file, *format, body, size);
    }
    at = body + size + size % 2;  // chunks begin at even places
  }
}

}  // namespace openrnn::formats
