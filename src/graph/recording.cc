#include "graph/recording.h"

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

void OpenTapes::record(const std::shared_ptr<const Node>& node) const {
  const std::lock_guard lock(mutex_);
  for (const auto& tape : tapes_) tape->add(node);
}

}  // namespace openrnn::graph
