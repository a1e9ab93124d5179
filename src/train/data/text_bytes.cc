// The bytes of texts, and their symbols as they are asked for.
#include <algorithm>
#include <filesystem>

#include "base/utf8.h"
#include "formats/file/byte_source.h"
#include "openrnn/formats.h"
#include "openrnn/train_data.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

// Where every so many characters begin: 8 bytes for 4096, and at most 4096 steps to any.
constexpr std::int64_t kIndexed = 4096;

}  // namespace

TextBytes::TextBytes(std::string text) {
  auto owned = std::make_shared<const std::string>(std::move(text));
  bytes_ = *owned;
  owner_ = std::move(owned);
}

TextBytes TextBytes::of_file(const std::string& path, std::uint64_t map_above) {
  std::error_code no_size;  // of a pipe
  const std::uint64_t size = std::filesystem::file_size(path, no_size);
  if (no_size || size <= map_above) return TextBytes(read_file(path));
  auto file = std::make_shared<const formats::FileSource>(path);
  TextBytes text;
  text.bytes_ = file->mapped();
  text.owner_ = std::move(file);
  return text;
}

TextBytes TextBytes::view(std::string_view bytes) {
  TextBytes text;
  text.bytes_ = bytes;
  return text;
}

TextBytes TextBytes::part(std::size_t begin, std::size_t end) const {
  TextBytes text;
  text.owner_ = owner_;
  text.bytes_ = bytes_.substr(begin, end - begin);
  return text;
}

TextSymbols::TextSymbols(std::vector<std::int32_t> ids)
    : ids_(std::move(ids)), count_(static_cast<std::int64_t>(ids_.size())) {}

TextSymbols::TextSymbols(const TextBytes& text, Vocabulary vocabulary)
    : text_(text), vocabulary_(std::move(vocabulary)) {
  const std::string_view bytes = text_;
  if (vocabulary_.level() == TextLevel::kByte) {
    count_ = static_cast<std::int64_t>(bytes.size());
    return;
  }
  for (std::size_t at = 0; at < bytes.size(); ++count_) {
    if (count_ % kIndexed == 0) places_.push_back(at);
    if (next_code_point(bytes, at) < 0) {
      throw ArgumentError(message("Vocabulary", "a text whose byte ", at,
                                  " is not UTF-8, expected UTF-8 (the level byte takes any)"));
    }
  }
}

void TextSymbols::read(std::int64_t first, std::int64_t count, std::int32_t* ids) const {
  const auto begin = static_cast<std::size_t>(first), n = static_cast<std::size_t>(count);
  if (!ids_.empty()) {
    std::copy_n(ids_.data() + begin, n, ids);
    return;
  }
  const std::string_view bytes = text_;
  if (vocabulary_.level() == TextLevel::kByte) {
    for (std::size_t i = 0; i < n; ++i) {
      ids[i] = vocabulary_.id_of(static_cast<unsigned char>(bytes[begin + i]));
    }
    return;
  }
  std::size_t at = places_[begin / kIndexed];
  for (std::size_t skip = begin % kIndexed; skip > 0; --skip) next_code_point(bytes, at);
  for (std::size_t i = 0; i < n; ++i) ids[i] = vocabulary_.id_of(next_code_point(bytes, at));
}

}  // namespace openrnn::train
