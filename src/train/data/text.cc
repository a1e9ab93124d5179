// Text files and parallel streams over them.
#include <algorithm>

#include "openrnn/formats.h"
#include "openrnn/train_data.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

TextBytes read_text(const std::string& path, std::uint64_t map_above) {
  TextBytes text = TextBytes::of_file(path, map_above);
  if (text.size() == 0) {
    throw ArgumentError(message("load_text", "'", path, "' is empty, expected a text"));
  }
  return text;
}

/// Where the held-out lines begin: the first line start in the last `fraction` of the text, or the
/// last line when that part holds none.
std::size_t split_point(const std::string& path, std::string_view text, double fraction) {
  if (!(fraction > 0.0 && fraction < 1.0)) {
    throw ArgumentError(message("load_text", "valid_fraction ", fraction,
                                ", expected more than 0 and less than 1"));
  }
  const std::size_t last_line = text.find_last_of('\n', text.size() - 2) + 1;
  if (text.size() < 2 || last_line == 0) {
    throw ArgumentError(message("load_text", "'", path,
                                "' has 1 line, expected at least 2, one of them to validate on "
                                "(or a file for that)"));
  }
  const auto from = static_cast<std::size_t>(static_cast<double>(text.size()) * (1.0 - fraction));
  const std::size_t line_end = text.find('\n', from == 0 ? 0 : from - 1);
  return std::min(last_line, line_end == std::string::npos ? last_line : line_end + 1);
}

}  // namespace

Text load_text(const TextOptions& options) {
  Text text;
  text.train = read_text(options.path, options.map_above);
  if (options.valid_path.empty()) {
    const std::size_t cut = split_point(options.path, text.train, options.valid_fraction);
    text.valid = text.train.part(cut, text.train.size());
    text.train = text.train.part(0, cut);
  } else {
    text.valid = read_text(options.valid_path, options.map_above);
  }
  try {
    text.vocabulary = Vocabulary::of_text(text.train, options.level);
  } catch (const ArgumentError& error) {
    throw ArgumentError(std::string(error.what()) + " in '" + options.path + "'");
  }
  return text;
}

TextStreams::TextStreams(TextSymbols symbols, const Options& options)
    : text_(std::move(symbols)),
      batch_(options.batch),
      seq_len_(options.seq_len),
      seed_(options.seed) {
  if (batch_ < 1 || seq_len_ < 1 || options.segment_windows < 1) {
    throw ArgumentError(message("TextStreams", "batch ", batch_, ", seq_len ", seq_len_,
                                " and segment_windows ", options.segment_windows,
                                ", expected at least 1 of each"));
  }
  // The last symbol is only predicted.
  const std::int64_t inputs = text_.size() - 1;
  if (inputs < batch_) {
    throw ArgumentError(message("TextStreams", "a text of ", text_.size(),
                                " symbols, expected at least ", batch_ + 1, " for ", batch_,
                                " parallel streams"));
  }
  seq_len_ = std::min(seq_len_, inputs / batch_);
  segment_windows_ = std::min(options.segment_windows, inputs / (batch_ * seq_len_));
  segments_ = inputs / (segment_windows_ * seq_len_);
  groups_ = segments_ / batch_;
}

/// Where the segments of an epoch begin, in its order. They have another offset each time, so that
/// no symbol is always the first.
const std::vector<std::int64_t>& TextStreams::starts(std::int64_t epoch) const {
  if (epoch == epoch_) return starts_;
  const std::int64_t length = segment_windows_ * seq_len_;
  const std::int64_t slack = text_.size() - 1 - segments_ * length;
  RandomStream random(seed_, static_cast<std::uint64_t>(epoch));
  const auto offset =
      static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(slack) + 1));
  epoch_ = -1;
  starts_.resize(static_cast<std::size_t>(segments_));
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    starts_[i] = offset + static_cast<std::int64_t>(i) * length;
  }
  for (std::size_t i = starts_.size(); i > 1; --i) {
    std::swap(starts_[i - 1], starts_[static_cast<std::size_t>(random.below(i))]);
  }
  epoch_ = epoch;
  return starts_;
}

Window TextStreams::window(const DataPosition& position) const {
  if (position.epoch < 0 || position.window < 0 || position.window >= windows()) {
    throw ArgumentError(message("TextStreams::window", "epoch ", position.epoch, ", window ",
                                position.window, ", expected windows 0 to ", windows() - 1));
  }
  const std::int64_t group = position.window / segment_windows_;
  const std::int64_t inside = position.window % segment_windows_;
  const std::vector<std::int64_t>& order = starts(position.epoch);
  Window window{Array(DType::kInt32, {seq_len_, batch_}), Array(DType::kInt32, {seq_len_, batch_}),
                inside == 0};
  const auto x = window.x.as<std::int32_t>();
  const auto y = window.y.as<std::int32_t>();
  std::vector<std::int32_t> symbols(static_cast<std::size_t>(seq_len_ + 1));
  for (std::int64_t b = 0; b < batch_; ++b) {
    const std::int64_t first =
        order[static_cast<std::size_t>(group * batch_ + b)] + inside * seq_len_;
    text_.read(first, seq_len_ + 1, symbols.data());
    for (std::int64_t t = 0; t < seq_len_; ++t) {
      const auto to = static_cast<std::size_t>(t * batch_ + b);
      x[to] = symbols[static_cast<std::size_t>(t)];
      y[to] = symbols[static_cast<std::size_t>(t + 1)];
    }
  }
  return window;
}

}  // namespace openrnn::train
