#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "base/excerpt.h"
#include "base/message.h"
#include "checkpoint/extras.h"
#include "checkpoint/folder_lock.h"
#include "formats/checkpoint_state.h"

namespace openrnn {
namespace {

namespace fs = std::filesystem;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// As paths in the state file: without a slash at the end.
std::string tidy(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder.empty() ? "." : folder;
}

std::string inside(const std::string& folder, const std::string& file) {
  return folder == "." ? file : (fs::path(folder) / file).string();
}

std::string file_name(const std::string& prefix) { return fs::path(prefix).filename().string(); }

void make_folder(const std::string& folder) {
  formats::c_path("CheckpointManager", folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder)) {
    throw IoError(message("[CheckpointManager] ", folder, ": cannot be made, expected a folder",
                          error ? ": " + error.message() : ""));
  }
}

// BASE-NUMBER or BASE-NUMBER-NUMBER.
bool is_stem(const std::string& name, const std::string& base) {
  if (!name.starts_with(base + "-") || name.size() == base.size() + 1) return false;
  return name.find_first_not_of("0123456789-", base.size()) == std::string::npos;
}

// The stem that a checkpoint's file name begins with, or ''.
std::string stem_of(const std::string& file, const std::string& base) {
  const std::size_t dot = file.find('.', base.size());
  if (dot == std::string::npos || !is_stem(file.substr(0, dot), base)) return {};
  const std::string kind = file.substr(dot);
  return kind.starts_with(".index") || kind.starts_with(".data-") ? file.substr(0, dot)
                                                                  : std::string();
}

// The prefix as this run names it, or '' for one of another folder or program: a state file may
// name anything, and what is listed here will be removed one day.
std::string own_prefix(const std::string& folder, const std::string& base,
                       const std::string& listed) {
  const fs::path path(listed);
  const std::string parent = path.parent_path().empty() ? "." : path.parent_path().string();
  const formats::FileIdentity there = formats::identity_of(parent);
  const bool own = there.there && there == formats::identity_of(folder) &&
                   is_stem(path.filename().string(), base);
  return own ? inside(folder, path.filename().string()) : std::string();
}

// A leftover of a killed process: incomplete, or complete and written by this library.
bool is_leftover(const std::string& prefix) {
  if (!tensor_bundle_exists(prefix)) return true;
  try {
    const TensorBundleReader reader(prefix);
    return std::any_of(
        reader.tensors().begin(), reader.tensors().end(),
        [](const TensorInfo& info) { return info.name.starts_with(checkpoint::kExtrasPrefix); });
  } catch (const Error&) {
    return false;  // perhaps another program's
  }
}

void check_options(const CheckpointManagerOptions& options) {
  if (options.keep < 0) {
    throw ArgumentError(message("[CheckpointManager] keep ", options.keep, ", expected 0 or more"));
  }
  using namespace std::string_view_literals;
  if (options.base.empty() || options.base.find_first_of("/\0"sv) != std::string::npos) {
    throw ArgumentError(message("[CheckpointManager] base '", excerpt(options.base),
                                "', expected the name of a file"));
  }
}

}  // namespace

std::optional<std::string> latest_checkpoint(const std::string& folder) {
  return formats::latest_checkpoint_in(folder);
}

CheckpointManager::CheckpointManager(std::string folder, CheckpointManagerOptions options)
    : folder_(tidy(std::move(folder))), options_(std::move(options)) {
  check_options(options_);
  make_folder(folder_);
  take_up();
}

void CheckpointManager::take_up() {
  const std::optional<CheckpointState> state = read_checkpoint_state(folder_);
  if (!state) return;
  std::vector<std::string> found;
  std::vector<double> times;
  const auto add = [&](const std::string& prefix, double time) {
    const bool known = std::find(found.begin(), found.end(), prefix) != found.end();
    if (prefix.empty() || known || !tensor_bundle_exists(prefix)) return;
    found.push_back(prefix);
    times.push_back(time);
  };
  for (std::size_t i = 0; i < prefixes_.size(); ++i) add(prefixes_[i], timestamps_[i]);
  for (std::size_t i = 0; i < state->all.size(); ++i) {
    add(own_prefix(folder_, options_.base, state->all[i]),
        i < state->timestamps.size() ? state->timestamps[i] : 0.0);
  }
  prefixes_ = std::move(found);
  timestamps_ = std::move(times);
  owns_folder_ = true;
}

void CheckpointManager::lock() {
  // A fork copies the manager, not its right to save.
  if (!lock_ || !lock_->is_own()) lock_ = checkpoint::FolderLock::take(folder_);
}

std::optional<std::string> CheckpointManager::latest() const { return latest_checkpoint(folder_); }

std::string CheckpointManager::new_prefix(std::int64_t step) const {
  // Never over a checkpoint that the state file names as the latest.
  const auto listed = [&](const std::string& stem) {
    return std::any_of(prefixes_.begin(), prefixes_.end(),
                       [&](const std::string& prefix) { return file_name(prefix) == stem; });
  };
  // No stream: it would silently drop text when memory runs out.
  const std::string first = options_.base + "-" + std::to_string(step);
  std::string stem = first;
  for (int number = 2; listed(stem); ++number) stem = first + "-" + std::to_string(number);
  return inside(folder_, stem);
}

std::string CheckpointManager::save(const Saver& saver, std::int64_t step, const Extras& extras) {
  return save([&](const std::string& prefix) { saver.write(prefix, extras); }, step);
}

std::string CheckpointManager::save(const std::function<void(const std::string& prefix)>& write,
                                    std::int64_t step) {
  if (step < 0) {
    throw ArgumentError(message("[CheckpointManager] step ", step, ", expected 0 or more"));
  }
  lock();
  take_up();  // another process, or manager of this one, may have saved before
  const std::string prefix = new_prefix(step);
  write(prefix);
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
  // A folder without a state file may hold checkpoints of other programs.
  if (owns_folder_) remove_unlisted();
  owns_folder_ = true;
  return prefix;
}

void CheckpointManager::remove_unlisted() const {
  std::set<std::string> stems;
  for (const std::string& name : formats::names_in(folder_)) {
    const std::string stem = stem_of(name, options_.base);
    if (!stem.empty()) stems.insert(stem);
  }
  for (const std::string& prefix : prefixes_) stems.erase(file_name(prefix));
  for (const std::string& stem : stems) {
    if (is_leftover(inside(folder_, stem))) remove_tensor_bundle(inside(folder_, stem));
  }
}

}  // namespace openrnn
