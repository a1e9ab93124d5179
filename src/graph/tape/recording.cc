#include "graph/tape/recording.h"

#include <algorithm>

namespace openrnn::graph {

void Recording::add(const std::shared_ptr<const Node>& node) {
  const std::lock_guard lock(mutex_);
  nodes_.push_back(node);
}

Nodes Recording::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

bool Recording::holds(const Node& node) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::lower_bound(nodes_.begin(), nodes_.end(), node.id,
                       [](const auto& each, std::uint64_t id) { return each->id < id; });
  return found != nodes_.end() && found->get() == &node;
}

const std::shared_ptr<OpenTapes>& OpenTapes::of_this_thread() {
  thread_local const std::shared_ptr<OpenTapes> tapes = std::make_shared<OpenTapes>();
  return tapes;
}

void OpenTapes::open(std::shared_ptr<Recording> tape) {
  const std::lock_guard lock(mutex_);
  tapes_.push_back(std::move(tape));
  count_ = tapes_.size();
}

void OpenTapes::close(const Recording& tape) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(tapes_, [&tape](const auto& each) { return each.get() == &tape; });
  count_ = tapes_.size();
}

std::shared_ptr<Recording> OpenTapes::take(const Recording& tape) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(tapes_.begin(), tapes_.end(),
                                  [&tape](const auto& each) { return each.get() == &tape; });
  if (found == tapes_.end()) return nullptr;
  std::shared_ptr<Recording> taken = std::move(*found);
  tapes_.erase(found);
  count_ = tapes_.size();
  return taken;
}

void OpenTapes::record(const std::shared_ptr<const Node>& node) const {
  const std::lock_guard lock(mutex_);
  for (const auto& tape : tapes_) tape->add(node);
}

Pause::Pause(const Recording& tape)
    : tapes_(*OpenTapes::of_this_thread()), paused_(tapes_.take(tape)) {}

Pause::~Pause() {
  if (paused_) tapes_.open(std::move(paused_));
}

}  // namespace openrnn::graph
