#include "train/group/group.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/excerpt.h"
#include "openrnn/runtime.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::size_t kTextBytes = 1024;  // of a failure, which is one line

bool power_of_two(std::int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

}  // namespace

std::string expected_parts(std::int64_t parts, int processes) {
  if (parts % processes == 0 && power_of_two(parts / processes)) return {};
  return "that many times a power of two, so that each computes a subtree of the sum: " +
         std::to_string(processes) + ", " + std::to_string(2 * processes) + ", " +
         std::to_string(4 * processes) + ", ..";
}

Group::Range Group::own_of(std::int64_t parts) const {
  const std::int64_t each = parts / size();
  return {rank() * each, (rank() + 1) * each};
}

std::vector<Group::Notice> Group::exchange(const Notice& mine) {
  if (broken_) {
    throw StateError(message("Group", "another call after one that has failed, expected a run of ",
                             "its own: the processes are not at one step any more"));
  }
  std::vector<Notice> all(static_cast<std::size_t>(size()));
  busy_ = true;
  communicator_.all_gather(&mine, all.data(), sizeof(Notice));
  busy_ = false;
  const auto at = [&](Point point) {
    return [point](const Notice& each) { return each.point == point; };
  };
  if (std::any_of(all.begin(), all.end(), at(Point::kFailed))) {
    broken_ = true;
    throw_failure(all, {});
  }
  const auto other = std::find_if_not(all.begin(), all.end(), at(all[0].point));
  if (other != all.end()) {
    broken_ = true;
    throw StateError(message("Group", "rank ", other - all.begin(),
                             " is at another call than rank 0, expected the same calls in the ",
                             "same order by all processes"));
  }
  return all;
}

void Group::fail(const std::string& why) {
  if (broken_) return;
  broken_ = true;
  if (busy_) {
    // Among messages, which the others may be waiting for.
    communicator_.abort(why);
    return;
  }
  try {
    std::vector<Notice> all(static_cast<std::size_t>(size()));
    const Notice mine{.point = Point::kFailed};
    communicator_.all_gather(&mine, all.data(), sizeof(Notice));
    throw_failure(all, why);
  } catch (const std::exception&) {
    // Its own error goes on in any case.
  }
}

void Group::throw_failure(const std::vector<Notice>& all, const std::string& own_text) {
  int failed = 0;
  while (all[static_cast<std::size_t>(failed)].point != Point::kFailed) ++failed;
  std::vector<char> text(kTextBytes, '\0');
  std::memcpy(text.data(), own_text.data(), std::min(own_text.size(), kTextBytes - 1));
  communicator_.broadcast(text.data(), text.size(), failed);
  text.back() = '\0';
  throw PeerError(failed,
                  message("Group", "rank ", failed, " of ", size(), " has failed: ", text.data()));
}

Group::Decision Group::decide(const Decision& mine) {
  const std::vector<Notice> all = exchange(
      {.point = Point::kDecide, .yes = mine.goes_on ? 1U : 0U, .saves = mine.saves ? 1U : 0U});
  const bool goes_on =
      std::all_of(all.begin(), all.end(), [](const Notice& each) { return each.yes != 0; });
  return {goes_on, all[0].saves != 0};
}

double Group::number_of_first(double mine) {
  return exchange({.point = Point::kNumber, .number = mine})[0].number;
}

std::string Group::text_of_first(const std::string& mine) {
  const std::vector<Notice> all = exchange({.point = Point::kText, .size = mine.size()});
  std::string text = mine;
  text.resize(all[0].size);
  busy_ = true;
  communicator_.broadcast(text.data(), text.size(), 0);
  busy_ = false;
  return text;
}

void Group::require_same(std::string_view call, std::string_view what, const std::string& mine) {
  const std::string expected = text_of_first(mine);
  together([&] {
    if (mine == expected) return;
    throw StateError(message(call, "rank ", rank(), " of ", size(), " has ", what, " ",
                             excerpt(mine), ", expected that of rank 0, ", excerpt(expected)));
  });
}

std::vector<bool> Group::present_anywhere(const std::vector<Notice>& all,
                                          const std::vector<bool>& own) {
  std::vector<bool> anywhere(own.size());
  for (const Notice& each : all) {
    for (std::size_t i = 0; i < std::min(own.size(), kFlags); ++i) {
      if ((each.flags[i / 64] >> (i % 64) & 1U) != 0) anywhere[i] = true;
    }
  }
  if (own.size() <= kFlags) return anywhere;
  const std::size_t rest = own.size() - kFlags;
  std::vector<char> mine(rest), theirs(rest * all.size());
  for (std::size_t i = 0; i < rest; ++i) mine[i] = own[kFlags + i] ? 1 : 0;
  communicator_.all_gather(mine.data(), theirs.data(), rest);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t i = 0; i < rest; ++i) {
      if (theirs[rank * rest + i] != 0) anywhere[kFlags + i] = true;
    }
  }
  return anywhere;
}

void Group::reduce_early(DType dtype, const std::vector<SharedPart>& parts, Adding adding) {
  const Clock::time_point asked = Clock::now();
  exchange({.point = Point::kEarly});
  const Clock::time_point began = Clock::now();
  busy_ = true;
  cost_.bytes += reduce(communicator_, reduction_, dtype, parts, adding);
  busy_ = false;
  const double seconds = seconds_since(began);
  cost_.seconds += seconds;
  if (adding == Adding::kAlone) {
    cost_.seconds_overlapped += seconds;
  } else {
    cost_.seconds_waited += std::chrono::duration<double>(began - asked).count();
  }
}

GradientSum::Step Group::sum(std::optional<GradientSum::Step> own,
                             const std::vector<Variable>& variables,
                             std::vector<DeviceArray> early) {
  Notice notice{.point = Point::kStep, .yes = own ? 1U : 0U};
  std::vector<DeviceArray> gradients = own ? std::move(own->gradients) : std::vector<DeviceArray>();
  gradients.resize(variables.size());
  early.resize(variables.size());
  std::vector<bool> present(variables.size());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    present[i] = !gradients[i].empty();
    if (present[i] && i < kFlags) notice.flags[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  if (own) notice.number = own->loss.item();

  const Clock::time_point asked = Clock::now();
  const std::vector<Notice> all = exchange(notice);
  const Clock::time_point began = Clock::now();
  cost_.seconds_waited += std::chrono::duration<double>(began - asked).count();
  busy_ = true;
  const std::vector<bool> anywhere = present_anywhere(all, present);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    std::vector<SharedPart> parts;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (!anywhere[i] || compute_dtype(variables[i].dtype()) != dtype) continue;
      DeviceArray& each = gradients[i];
      if (!early[i].empty()) {
        each = std::move(early[i]);
        continue;
      }
      if (present[i]) {
        each.make_unique_owner();
      } else {
        each = DeviceArray(variables[i].device(), dtype, variables[i].shape());
      }
      parts.push_back({&each.device(), each.mutable_data(), each.size_bytes(), present[i]});
    }
    cost_.bytes += reduce(communicator_, reduction_, dtype, parts);
  }
  busy_ = false;
  ++cost_.steps;
  cost_.seconds += seconds_since(began);

  std::vector<std::optional<double>> losses;
  for (const Notice& each : all) {
    losses.push_back(each.yes != 0 ? std::optional(each.number) : std::nullopt);
  }
  const double loss = tree_sum(std::move(losses));
  return {std::move(gradients),
          Tensor(Array::of<double>({}, std::span<const double>(&loss, 1)).view())};
}

}  // namespace openrnn::train
