#include "checkpoint/objects/restoration.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "graph/scope_stack.h"

namespace openrnn::checkpoint {

Restoration::Restoration(const std::string& prefix, NamedTrackables objects)
    : file_(prefix), objects_(std::move(objects)) {}

CheckpointStatus Restoration::start() { return advance(true); }

CheckpointStatus Restoration::go_on() { return advance(false); }

CheckpointStatus Restoration::advance(bool first) {
  // A build runs in the layer's scope, which is not that of slots.
  const graph::ReopenedScope top("", false);
  ObjectTree tree = walk(objects_, !first);
  std::optional<ObjectPlan> plan(std::in_place, file_, tree, given_);
  const auto wanted = plan->slots_to_make();
  if (!wanted.empty()) {
    for (const auto& [optimizer, variables] : wanted) tree.nodes[optimizer].make_slots(variables);
    tree = walk(objects_, !first);
    plan.emplace(file_, tree, given_);
  }
  CheckpointStatus status = plan->status();
  const std::vector<std::size_t> waiting = plan->waiting();
  const bool nothing_to_do = status.unused.empty() && status.missing.empty();
  const bool may_come = std::any_of(waiting.begin(), waiting.end(),
                                    [&](std::size_t node) { return tree.nodes[node].unbuilt; });
  if (first && status.restored.empty() && !may_come && !nothing_to_do && !objects_.empty()) {
    throw_no_match(status);
  }
  plan->assign();
  given_ = plan->given();
  lacking_.clear();
  for (const std::size_t node : waiting) lacking_.insert(tree.nodes[node].token);
  for (const std::size_t node : waiting) wait_at(tree.nodes[node]);
  status.restoration = shared_from_this();
  return status;
}

void Restoration::wait_at(const TreeNode& node) {
  if (!waiting_at_.insert(node.token).second) return;
  node.when_changed([self = shared_from_this(), token = node.token] {
    self->advance(false);
    if (self->lacking_.contains(token)) return false;
    self->waiting_at_.erase(token);
    return true;
  });
}

void Restoration::throw_no_match(const CheckpointStatus& status) const {
  std::vector<std::string> names;
  for (const auto& [name, object] : objects_) names.push_back(name);
  throw ArgumentError(message(
      "[Checkpoint::read] nothing of ", file_.reader.prefix(), " matches: it holds ",
      status.unused.empty() ? "no values" : listed_excerpts(status.unused), ", expected some of ",
      listed_excerpts(status.missing.empty() ? names : status.missing)));
}

}  // namespace openrnn::checkpoint
