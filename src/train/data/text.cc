// Text files and parallel streams over them.
#include <algorithm>

#include "openrnn/formats.h"
#include "openrnn/train_data.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

std::string read_text(const std::string& path) {
  std::string text = read_file(path);
  if (text.empty()) {
    throw ArgumentError(message("load_text", "'", path, "' is empty, expected a text"));
  }
  return text;
}

/// Where the held-out lines begin: the first line start in the last `fraction` of the text, or the
/// last line when that part holds none.
std::size_t split_point(const std::string& path, const std::string& text, double fraction) {
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
  text.train = read_text(options.path);
  if (options.valid_path.empty()) {
    const std::size_t cut = split_point(options.path, text.train, options.valid_fraction);
    text.valid = text.train.substr(cut);
    text.train.resize(cut);
  } else {
    text.valid = read_text(options.valid_path);
  }
  try {
    text.vocabulary = Vocabulary::of_text(text.train, options.level);
  } catch (const ArgumentError& error) {
    throw ArgumentError(std::string(error.what()) + " in '" + options.path + "'");
  }
  return text;
}

TextStreams::TextStreams(std::vector<std::int32_t> ids, std::int64_t batch, std::int64_t seq_len)
    : ids_(std::move(ids)), batch_(batch), seq_len_(seq_len), stream_length_(0) {
  if (batch < 1 || seq_len < 1) {
    throw ArgumentError(message("TextStreams", "batch ", batch, " and seq_len ", seq_len,
                                ", expected at least 1 of each"));
  }
  const auto symbols = static_cast<std::int64_t>(ids_.size());
  if (symbols < 2 || (symbols - 1) / batch < 1) {
    throw ArgumentError(message("TextStreams", "a text of ", symbols,
                                " symbols, expected at least ", batch + 1, " for ", batch,
                                " parallel streams"));
  }
  stream_length_ = (symbols - 1) / batch;
}

std::int64_t TextStreams::windows() const noexcept {
  return (stream_length_ + seq_len_ - 1) / seq_len_;
}

std::int64_t TextStreams::steps_of(std::int64_t window) const {
  return std::min(seq_len_, stream_length_ - window * seq_len_);
}

std::int64_t TextStreams::symbols(std::int64_t window) const { return steps_of(window) * batch_; }

Window TextStreams::window(std::int64_t index) const {
  if (index < 0 || index >= windows()) {
    throw ArgumentError(
        message("TextStreams::window", "window ", index, ", expected 0 to ", windows() - 1));
  }
  const std::int64_t steps = steps_of(index);
  Window window{Array(DType::kInt32, {steps, batch_}), Array(DType::kInt32, {steps, batch_}),
                index == 0};
  const auto x = window.x.as<std::int32_t>();
  const auto y = window.y.as<std::int32_t>();
  for (std::int64_t t = 0; t < steps; ++t) {
    for (std::int64_t b = 0; b < batch_; ++b) {
      const auto at = static_cast<std::size_t>(b * stream_length_ + index * seq_len_ + t);
      const auto to = static_cast<std::size_t>(t * batch_ + b);
      x[to] = ids_[at];
      y[to] = ids_[at + 1];
    }
  }
  return window;
}

}  // namespace openrnn::train
