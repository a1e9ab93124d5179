#include <filesystem>
#include <set>

#include "base/excerpt.h"
#include "base/message.h"
#include "checkpoint/objects/restoration.h"
#include "checkpoint/objects/write.h"

namespace openrnn {
namespace {

void check_prefix(const char* call, const std::string& prefix) {
  if (prefix.empty() || prefix.back() == '/') {
    throw ArgumentError(message("[", call, "] prefix '", prefix, "', expected FOLDER/NAME"));
  }
}

void require_prefix(const char* call, const CheckpointStatus& status) {
  if (!status.prefix.empty()) return;
  throw ArgumentError(message("[", call, "] restore() was given no checkpoint, expected one"));
}

std::string counted(std::size_t count, const char* what) {
  return message(count, " ", what, count == 1 ? "" : "s");
}

// "2 variables and 1 object: a/kernel, a/bias, b"
std::string missing_text(const CheckpointStatus& status) {
  const std::size_t objects = status.missing_objects;
  const std::size_t variables = status.missing.size() - objects;
  std::string text = variables > 0 ? counted(variables, "variable") : "";
  if (objects > 0) text += (variables > 0 ? " and " : "") + counted(objects, "object");
  return message(text, ": ", listed_excerpts(status.missing));
}

}  // namespace

CheckpointStatus CheckpointStatus::current() const {
  return restoration ? restoration->go_on() : *this;
}

const CheckpointStatus& CheckpointStatus::assert_existing_objects_matched() const {
  require_prefix("assert_existing_objects_matched", *this);
  const CheckpointStatus now = current();
  if (now.missing.empty()) return *this;
  throw ArgumentError(message("[assert_existing_objects_matched] ", prefix, " has no value for ",
                              missing_text(now)));
}

const CheckpointStatus& CheckpointStatus::assert_consumed() const {
  require_prefix("assert_consumed", *this);
  const CheckpointStatus now = current();
  if (now.missing.empty() && now.unused.empty()) return *this;
  std::string text = message("[assert_consumed] ", prefix);
  if (!now.missing.empty()) {
    text += message(" has no value for ", missing_text(now));
  }
  if (!now.unused.empty()) {
    text += message(now.missing.empty() ? " holds " : "; and it holds ", now.unused.size(),
                    " values that nothing took: ", listed_excerpts(now.unused));
  }
  throw ArgumentError(text);
}

const CheckpointStatus& CheckpointStatus::assert_nontrivial_match() const {
  require_prefix("assert_nontrivial_match", *this);
  const CheckpointStatus now = current();
  if (!now.restored.empty()) return *this;
  throw ArgumentError(message(
      "[assert_nontrivial_match] nothing of ", prefix,
      " was restored, expected one value at least; it holds: ", listed_excerpts(now.unused)));
}

Checkpoint::Checkpoint(NamedTrackables objects) : objects_(std::move(objects)) {
  std::set<std::string> names;
  for (const auto& [name, object] : objects_) {
    if (name.empty() || name == checkpoint::kSaveCounter || !names.insert(name).second) {
      throw ArgumentError(message("[Checkpoint] an object is named '", name,
                                  "', expected different names, not empty, other than '",
                                  checkpoint::kSaveCounter, "'"));
    }
  }
}

std::string Checkpoint::write(const std::string& prefix) const {
  check_prefix("Checkpoint::write", prefix);
  checkpoint::write_tree(checkpoint::walk(objects_), save_counter_, prefix);
  return prefix;
}

std::string Checkpoint::save(const std::string& prefix) {
  check_prefix("Checkpoint::save", prefix);
  const std::int64_t number = save_counter() + 1;
  std::string numbered = prefix + "-" + std::to_string(number);
  checkpoint::write_tree(checkpoint::walk(objects_), number, numbered);
  const std::string folder = std::filesystem::path(prefix).parent_path().string();
  write_checkpoint_state(folder.empty() ? "." : folder, {numbered, {numbered}, {}, std::nullopt});
  save_counter_ = number;
  return numbered;
}

CheckpointStatus Checkpoint::read(const std::string& prefix) const {
  return std::make_shared<checkpoint::Restoration>(prefix, objects_)->start();
}

CheckpointStatus Checkpoint::restore(const std::optional<std::string>& prefix) {
  if (!prefix) return {};
  const auto restoration = std::make_shared<checkpoint::Restoration>(*prefix, objects_);
  const std::optional<std::int64_t> counter = restoration->file().save_counter();
  CheckpointStatus status = restoration->start();
  if (counter) save_counter_ = counter;
  return status;
}

}  // namespace openrnn
