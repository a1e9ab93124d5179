#include <filesystem>
#include <set>

#include "base/message.h"
#include "checkpoint/objects/restore.h"
#include "checkpoint/objects/write.h"

namespace openrnn {
namespace {

void check_prefix(const char* call, const std::string& prefix) {
  if (prefix.empty() || prefix.back() == '/') {
    throw ArgumentError(message("[", call, "] prefix '", prefix, "', expected FOLDER/NAME"));
  }
}

}  // namespace

const CheckpointStatus& CheckpointStatus::assert_existing_objects_matched() const {
  if (missing.empty()) return *this;
  throw ArgumentError(message("[assert_existing_objects_matched] ", prefix, " has no value for ",
                              missing.size(), " variables: ", listed(missing)));
}

const CheckpointStatus& CheckpointStatus::assert_consumed() const {
  if (missing.empty() && unused.empty()) return *this;
  std::string text = message("[assert_consumed] ", prefix);
  if (!missing.empty()) {
    text += message(" has no value for ", missing.size(), " variables: ", listed(missing));
  }
  if (!unused.empty()) {
    text += message(missing.empty() ? " holds " : "; and it holds ", unused.size(),
                    " values that nothing took: ", listed(unused));
  }
  throw ArgumentError(text);
}

const CheckpointStatus& CheckpointStatus::assert_nontrivial_match() const {
  if (!restored.empty()) return *this;
  throw ArgumentError(
      message("[assert_nontrivial_match] nothing of ", prefix,
              " was restored, expected one value at least; it holds: ", listed(unused)));
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
  std::string numbered = message(prefix, "-", number);
  checkpoint::write_tree(checkpoint::walk(objects_), number, numbered);
  const std::string folder = std::filesystem::path(prefix).parent_path().string();
  write_checkpoint_state(folder.empty() ? "." : folder, {numbered, {numbered}, {}, std::nullopt});
  save_counter_ = number;
  return numbered;
}

CheckpointStatus Checkpoint::read(const std::string& prefix) const {
  return read_from(checkpoint::ObjectFile(prefix));
}

CheckpointStatus Checkpoint::restore(const std::string& prefix) {
  const checkpoint::ObjectFile file(prefix);
  const std::optional<std::int64_t> counter = file.save_counter();
  CheckpointStatus status = read_from(file);
  if (counter) save_counter_ = counter;
  return status;
}

CheckpointStatus Checkpoint::read_from(const checkpoint::ObjectFile& file) const {
  checkpoint::ObjectTree tree = checkpoint::walk(objects_);
  std::optional<checkpoint::ObjectPlan> plan(std::in_place, file, tree);
  const auto wanted = plan->slots_to_make();
  if (!wanted.empty()) {
    for (const auto& [optimizer, variables] : wanted) tree.nodes[optimizer].make_slots(variables);
    tree = checkpoint::walk(objects_);
    plan.emplace(file, tree);
  }
  plan->assign();
  return plan->status();
}

}  // namespace openrnn
