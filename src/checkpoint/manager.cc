#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "base/message.h"
#include "checkpoint/extras.h"

namespace openrnn {
namespace {

namespace fs = std::filesystem;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// As paths in the state file come out: without a slash at the end.
std::string tidy(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder.empty() ? "." : folder;
}

std::string inside(const std::string& folder, const std::string& file) {
  return folder == "." ? file : (fs::path(folder) / file).string();
}

std::string file_name(const std::string& prefix) { return fs::path(prefix).filename().string(); }

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder)) {
    throw IoError(message("[CheckpointManager] ", folder, ": cannot be made, expected a folder",
                          error ? ": " + error.message() : ""));
  }
}

// The BASE-NUMBER or BASE-NUMBER-NUMBER that a checkpoint's file name begins with, or ''.
std::string stem_of(const std::string& file, const std::string& base) {
  const std::size_t dot = file.find('.', base.size());
  if (!file.starts_with(base + "-") || dot == std::string::npos) return {};
  const std::string number = file.substr(base.size() + 1, dot - base.size() - 1);
  const bool digits =
      !number.empty() && number.find_first_not_of("0123456789-") == std::string::npos;
  const std::string kind = file.substr(dot);
  return digits && (kind.starts_with(".index") || kind.starts_with(".data-")) ? file.substr(0, dot)
                                                                              : std::string();
}

// What a killed process left: unfinished or half removed, or whole and written by a run of ours.
bool is_leftover(const std::string& prefix) {
  if (!tensor_bundle_exists(prefix)) return true;
  try {
    const TensorBundleReader reader(prefix);
    return std::any_of(
        reader.tensors().begin(), reader.tensors().end(),
        [](const TensorInfo& info) { return info.name.starts_with(checkpoint::kExtrasPrefix); });
  } catch (const Error&) {
    return false;  // someone may want to look at it
  }
}

}  // namespace

std::optional<std::string> latest_checkpoint(const std::string& folder) {
  const std::optional<CheckpointState> state = read_checkpoint_state(folder);
  if (!state) return {};
  if (!state->latest.empty() && tensor_bundle_exists(state->latest)) return state->latest;
  for (auto prefix = state->all.rbegin(); prefix != state->all.rend(); ++prefix) {
    if (tensor_bundle_exists(*prefix)) return *prefix;
  }
  return {};
}

CheckpointManager::CheckpointManager(std::string folder, CheckpointManagerOptions options)
    : folder_(tidy(std::move(folder))), options_(std::move(options)) {
  if (options_.keep < 0) {
    throw ArgumentError(
        message("[CheckpointManager] keep ", options_.keep, ", expected 0 or more"));
  }
  make_folder(folder_);
  const std::optional<CheckpointState> state = read_checkpoint_state(folder_);
  if (!state) return;
  owns_folder_ = true;
  for (std::size_t i = 0; i < state->all.size(); ++i) {
    if (!tensor_bundle_exists(state->all[i])) continue;
    prefixes_.push_back(state->all[i]);
    timestamps_.push_back(i < state->timestamps.size() ? state->timestamps[i] : 0.0);
  }
}

std::optional<std::string> CheckpointManager::latest() const { return latest_checkpoint(folder_); }

std::string CheckpointManager::new_prefix(std::int64_t step) const {
  // Never over a checkpoint that the state file names: until it names another, that is the one.
  const auto listed = [&](const std::string& stem) {
    return std::any_of(prefixes_.begin(), prefixes_.end(),
                       [&](const std::string& prefix) { return file_name(prefix) == stem; });
  };
  const std::string first = message(options_.base, "-", step);
  std::string stem = first;
  for (int number = 2; listed(stem); ++number) stem = message(first, "-", number);
  return inside(folder_, stem);
}

std::string CheckpointManager::save(const Saver& saver, std::int64_t step, const Extras& extras) {
  if (step < 0) {
    throw ArgumentError(message("[CheckpointManager] step ", step, ", expected 0 or more"));
  }
  const std::string prefix = new_prefix(step);
  saver.save(prefix, extras);
  std::vector<std::string> kept = prefixes_;
  std::vector<double> times = timestamps_;
  kept.push_back(prefix);
  times.push_back(now());
  const std::size_t keep =
      options_.keep == 0 ? kept.size() : static_cast<std::size_t>(options_.keep);
  const auto extra = static_cast<std::ptrdiff_t>(kept.size() - std::min(kept.size(), keep));
  const std::vector<std::string> dropped(kept.begin(), kept.begin() + extra);
  kept.erase(kept.begin(), kept.begin() + extra);
  times.erase(times.begin(), times.begin() + extra);
  write_checkpoint_state(folder_, {prefix, kept, times, std::nullopt});
  prefixes_ = std::move(kept);
  timestamps_ = std::move(times);
  for (const std::string& old : dropped) remove_tensor_bundle(old);
  // A folder without a state file may hold checkpoints of other makers.
  if (owns_folder_) remove_unlisted();
  owns_folder_ = true;
  return prefix;
}

void CheckpointManager::remove_unlisted() const {
  std::set<std::string> stems;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string stem = stem_of(entry->path().filename().string(), options_.base);
    if (!stem.empty()) stems.insert(stem);
  }
  for (const std::string& prefix : prefixes_) stems.erase(file_name(prefix));
  for (const std::string& stem : stems) {
    if (is_leftover(inside(folder_, stem))) remove_tensor_bundle(inside(folder_, stem));
  }
}

}  // namespace openrnn
