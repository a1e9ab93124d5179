// Symbols of a text: bytes or Unicode characters.
#include "base/excerpt.h"
#include "base/utf8.h"
#include "openrnn/train_data.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

/// How many symbols there are at all: byte values, or Unicode scalar values (no surrogates).
std::int64_t possible(TextLevel level) {
  return level == TextLevel::kByte ? 256 : 0x110000 - 0x800;
}

std::int32_t next_symbol(std::string_view text, std::size_t& at, TextLevel level) {
  if (level == TextLevel::kByte) return static_cast<unsigned char>(text[at++]);
  const std::int32_t code = next_code_point(text, at);
  if (code < 0) {
    throw ArgumentError(message("Vocabulary", "a text whose byte ", at,
                                " is not UTF-8, expected UTF-8 (the level byte takes any)"));
  }
  return code;
}

}  // namespace

std::string_view to_string(TextLevel level) { return level == TextLevel::kByte ? "byte" : "char"; }

TextLevel parse_text_level(std::string_view name) {
  if (name == "byte") return TextLevel::kByte;
  if (name == "char") return TextLevel::kChar;
  throw ArgumentError(message("parse_text_level", "'", excerpt(name), "', expected byte or char"));
}

Vocabulary Vocabulary::of_text(std::string_view text, TextLevel level) {
  std::vector<bool> seen(level == TextLevel::kByte ? 256 : 0x110000);
  for (std::size_t at = 0; at < text.size();) {
    seen[static_cast<std::size_t>(next_symbol(text, at, level))] = true;
  }
  std::vector<std::int32_t> codes;
  for (std::size_t code = 0; code < seen.size(); ++code) {
    if (seen[code]) codes.push_back(static_cast<std::int32_t>(code));
  }
  return Vocabulary(level, std::move(codes));
}

Vocabulary::Vocabulary(TextLevel level, std::vector<std::int32_t> codes)
    : level_(level), codes_(std::move(codes)) {
  const std::int32_t top = level == TextLevel::kByte ? 0xff : 0x10ffff;
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    const bool surrogate = codes_[i] >= 0xd800 && codes_[i] < 0xe000;
    if (codes_[i] < 0 || codes_[i] > top || surrogate || (i > 0 && codes_[i] <= codes_[i - 1])) {
      throw ArgumentError(message("Vocabulary", "code ", codes_[i], " at place ", i,
                                  ", expected ascending codes of 0 to ", top,
                                  " without surrogates"));
    }
    ids_.emplace(codes_[i], static_cast<std::int32_t>(i));
  }
}

std::int64_t Vocabulary::size() const noexcept {
  return static_cast<std::int64_t>(codes_.size()) + (unknown() >= 0 ? 1 : 0);
}

std::int32_t Vocabulary::unknown() const noexcept {
  const auto known = static_cast<std::int64_t>(codes_.size());
  return known < possible(level_) ? static_cast<std::int32_t>(known) : -1;
}

double Vocabulary::bits_of_unknown() const {
  const auto others = static_cast<double>(possible(level_)) - static_cast<double>(codes_.size());
  return others > 1.0 ? portable_log(others) / portable_log(2.0) : 0.0;
}

std::int32_t Vocabulary::id_of(std::int32_t code) const {
  const auto found = ids_.find(code);
  return found == ids_.end() ? unknown() : found->second;
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  ids.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    ids.push_back(id_of(next_symbol(text, at, level_)));
  }
  return ids;
}

std::string Vocabulary::decode(std::int32_t id) const {
  if (id < 0 || id >= size()) {
    throw ArgumentError(message("Vocabulary::decode", "id ", id, ", expected 0 to ", size() - 1));
  }
  if (id == unknown()) return {};
  const std::int32_t code = codes_[static_cast<std::size_t>(id)];
  return level_ == TextLevel::kByte ? std::string(1, static_cast<char>(code)) : utf8_of(code);
}

}  // namespace openrnn::train
