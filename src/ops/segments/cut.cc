#include "ops/segments/cut.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/message.h"

namespace openrnn::ops {
namespace {

// Rows of padding that are not worth a call of their own.
constexpr std::int64_t kSpareRows = 1024;

}  // namespace

Segments::Segments(const RnnInputs& in, std::int64_t max_time, std::int64_t batch)
    : in_(in), max_time_(max_time), batch_(batch) {
  for (std::int64_t b = 0; b < batch; ++b) cut_row(b);
  form_groups();
  const std::size_t last = groups() - 1;
  const std::int64_t rows = groups_[last].first_row + time(last) * count(last);
  if (std::max(rows, max_time * batch) > std::numeric_limits<std::int32_t>::max()) {
    throw ArgumentError(message("[", in.call, "] ", max_time, " steps of ", batch,
                                " rows with mask or reset, which are ", rows,
                                " rows of sequences, expected fewer than 2^31"));
  }
}

void Segments::cut_row(std::int64_t b) {
  const std::int64_t length =
      in_.sequence_lengths ? (*in_.sequence_lengths)[static_cast<std::size_t>(b)] : max_time_;
  segments_.push_back({.row = b});
  for (std::int64_t t = 0; t < length; ++t) {
    if (flag(in_.flags.reset, t, b, false)) {
      segments_.back().last = t;
      if (t > 0) segments_.push_back({.row = b, .first = t});
      segments_.back().put_back = true;
    }
    if (flag(in_.flags.mask, t, b, true)) segments_.back().steps.push_back(t);
  }
  segments_.back().last = length;
}

void Segments::form_groups() {
  std::vector<std::size_t> by_length(segments_.size());
  std::iota(by_length.begin(), by_length.end(), std::size_t{0});
  const auto size = [this](std::size_t s) { return segments_[s].size(); };
  if (in_.flags.reset.empty()) {
    std::int64_t longest = 0;
    for (const Segment& segment : segments_) longest = std::max(longest, segment.size());
    return add_group(std::move(by_length), longest);
  }
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  for (auto next = by_length.begin(); next != by_length.end() || groups_.empty();) {
    const auto first = next;
    const std::int64_t longest = first == by_length.end() ? 0 : size(*first);
    std::int64_t steps = 0;
    for (; next != by_length.end(); ++next) {
      const std::int64_t rows = (longest + 1) * (next - first + 1);
      if (rows > 2 * (steps + size(*next)) + kSpareRows) break;
      steps += size(*next);
    }
    std::vector<std::size_t> members(first, next);
    // Where one group holds all, segments keep their order.
    std::sort(members.begin(), members.end());
    add_group(std::move(members), longest);
  }
}

void Segments::add_group(std::vector<std::size_t> members, std::int64_t longest) {
  Group group{.members = std::move(members), .longest = longest};
  if (!groups_.empty()) {
    const Group& before = groups_.back();
    group.first = before.first + std::ssize(before.members);
    group.first_row = before.first_row + (before.longest + 1) * std::ssize(before.members);
  }
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    segments_[group.members[i]].group = groups_.size();
    segments_[group.members[i]].member = static_cast<std::int64_t>(i);
  }
  groups_.push_back(std::move(group));
}

std::vector<std::int32_t> Segments::lengths(std::size_t g) const {
  std::vector<std::int32_t> all;
  for (const std::size_t s : groups_[g].members) {
    all.push_back(static_cast<std::int32_t>(segments_[s].size()));
  }
  return all;
}

std::vector<std::int32_t> Segments::inputs(std::size_t g) const {
  std::vector<std::int32_t> from(static_cast<std::size_t>(time(g) * count(g)), 0);
  for (const std::size_t s : groups_[g].members) {
    const Segment& own = segments_[s];
    for (std::int64_t k = 0; k < own.size(); ++k) {
      from[static_cast<std::size_t>(k * count(g) + own.member)] =
          step_of_call(own.steps[static_cast<std::size_t>(k)], own.row);
    }
  }
  return from;
}

std::vector<std::int32_t> Segments::first_states(std::size_t g, std::int32_t zeros) const {
  std::vector<std::int32_t> rows;
  for (const std::size_t s : groups_[g].members) {
    const Segment& own = segments_[s];
    const bool initial = !own.put_back || in_.flags.reset_to_initial;
    rows.push_back(initial ? static_cast<std::int32_t>(own.row) : zeros);
  }
  return rows;
}

std::vector<std::int32_t> Segments::outputs(bool zero_masked, bool backward) const {
  std::vector<std::int32_t> from(static_cast<std::size_t>(max_time_ * batch_));
  // Padding of the first segment.
  if (!segments_.empty()) {
    const Segment& first = segments_[groups_[0].members[0]];
    std::fill(from.begin(), from.end(), place(first, groups_[0].longest));
  }
  for (const Segment& own : segments_) {
    std::int64_t k = 0;  // steps of the segment before t
    for (std::int64_t t = own.first; t < own.last; ++t) {
      const bool computed = k < own.size() && own.steps[static_cast<std::size_t>(k)] == t;
      const std::int64_t last = backward ? k : k - 1;
      std::int32_t& to = from[static_cast<std::size_t>(step_of_call(t, own.row))];
      if (computed) {
        to = place(own, k++);
      } else if (!zero_masked && last >= 0 && last < own.size()) {
        to = place(own, last);
      }
    }
  }
  return from;
}

std::vector<std::int32_t> Segments::last_of_rows() const {
  std::vector<std::int32_t> last(static_cast<std::size_t>(batch_));
  for (const Segment& own : segments_) {
    last[static_cast<std::size_t>(own.row)] =
        static_cast<std::int32_t>(groups_[own.group].first + own.member);
  }
  return last;
}

}  // namespace openrnn::ops
