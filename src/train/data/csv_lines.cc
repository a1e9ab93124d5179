#include "train/data/csv_lines.h"

#include <algorithm>

namespace openrnn::train {
namespace {

constexpr std::size_t kAtOnce = std::size_t{1} << 20;
constexpr std::string_view kMark = "\xef\xbb\xbf";

std::string_view trimmed(std::string_view cell) {
  const auto first = cell.find_first_not_of(" \r");
  if (first == std::string_view::npos) return {};
  return cell.substr(first, cell.find_last_not_of(" \r") - first + 1);
}

}  // namespace

CsvLines::CsvLines(const formats::ByteSource& file) : CsvLines(file, 0, file.size(), kAtOnce) {
  fill();
  if (buffer_.starts_with(kMark)) at_ = kMark.size();
}

void CsvLines::fill() {
  buffer_.erase(0, at_);
  base_ += at_;
  at_ = 0;
  const std::size_t before = buffer_.size();
  const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(at_once_, end_ - read_));
  buffer_.resize(before + more);
  file_.read_at(read_, buffer_.data() + before, more);
  read_ += more;
}

bool CsvLines::next() {
  for (;;) {
    const std::string_view rest = std::string_view(buffer_).substr(at_);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos && read_ < end_) {
      fill();
      continue;
    }
    if (rest.empty()) return false;
    line_ = rest.substr(0, end);
    offset_ = base_ + at_;
    at_ += end == std::string_view::npos ? rest.size() : end + 1;
    ++number_;
    if (line_.find_first_not_of(" \r") != std::string_view::npos) return true;
  }
}

const std::vector<std::string_view>& CsvCells::split(std::string_view line, char delimiter) {
  cells_.clear();
  if (line.find('"') != std::string_view::npos) {
    unquote(line, delimiter);
    return cells_;
  }
  for (;;) {
    const std::size_t end = line.find(delimiter);
    cells_.push_back(trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) return cells_;
    line.remove_prefix(end + 1);
  }
}

void CsvCells::unquote(std::string_view line, char delimiter) {
  unquoted_.assign(1, {});
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      unquoted_.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == delimiter && !quoted) {
      unquoted_.emplace_back();
    } else {
      unquoted_.back() += line[i];
    }
  }
  for (const std::string& cell : unquoted_) cells_.push_back(trimmed(cell));
}

}  // namespace openrnn::train
