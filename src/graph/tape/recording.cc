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
  tapes_.push_back({std::move(tape)});
  count();
}

void OpenTapes::close(const Recording& tape) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(tapes_, [&tape](const Open& each) { return each.tape.get() == &tape; });
  count();
}

bool OpenTapes::pause(const Recording& tape) {
  const std::lock_guard lock(mutex_);
  Open* const found = find(tape);
  if (!found || found->paused) return false;
  found->paused = true;
  count();
  return true;
}

void OpenTapes::resume(const Recording& tape) noexcept {
  const std::lock_guard lock(mutex_);
  if (Open* const found = find(tape)) found->paused = false;
  count();
}

OpenTapes::Open* OpenTapes::find(const Recording& tape) noexcept {
  const auto found = std::find_if(tapes_.begin(), tapes_.end(),
                                  [&tape](const Open& each) { return each.tape.get() == &tape; });
  return found == tapes_.end() ? nullptr : &*found;
}

void OpenTapes::count() noexcept {
  count_ = static_cast<std::size_t>(
      std::count_if(tapes_.begin(), tapes_.end(), [](const Open& each) { return !each.paused; }));
}

void OpenTapes::record(const std::shared_ptr<const Node>& node) const {
  const std::lock_guard lock(mutex_);
  for (const Open& each : tapes_) {
    if (!each.paused) each.tape->add(node);
  }
}

Pause::Pause(const Recording& tape)
    : tapes_(*OpenTapes::of_this_thread()), paused_(tapes_.pause(tape) ? &tape : nullptr) {}

Pause::~Pause() {
  if (paused_) tapes_.resume(*paused_);
}

}  // namespace openrnn::graph
