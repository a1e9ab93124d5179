#include <cstdio>
#include <deque>
#include <mutex>
#include <stdexcept>

#include "cudnn/stand_in/machine.h"

namespace openrnn::stand_in {
namespace {

struct Queue {
  std::recursive_mutex mutex;
  std::deque<std::function<void()>> work;
  std::string broken;
  double clock = 0.0;
};

Queue& queue() {
  static auto* all = new Queue;
  return *all;
}

thread_local int contexts = 0;

void run(const std::function<void()>& work) {
  Queue& all = queue();
  if (!all.broken.empty()) return;
  try {
    work();
  } catch (const std::exception& error) {
    all.broken = error.what();
    std::fprintf(stderr, "the stand-in of the GPU: %s\n", error.what());
  }
}

}  // namespace

void enqueue(std::function<void()> work) {
  const std::lock_guard lock(queue().mutex);
  if (setting("STAND_IN_DEFERRED", 0) != 0) {
    queue().work.push_back(std::move(work));
  } else {
    synchronize();
    run(work);
  }
}

void synchronize() {
  const std::lock_guard lock(queue().mutex);
  while (!queue().work.empty()) {
    const std::function<void()> next = std::move(queue().work.front());
    queue().work.pop_front();
    run(next);
  }
  run(check_guards);
}

const std::string& broken() { return queue().broken; }

bool has_context() { return contexts > 0; }
void push_context() { ++contexts; }
bool pop_context() { return contexts > 0 && contexts-- > 0; }

double clock_now() {
  const std::lock_guard lock(queue().mutex);
  return queue().clock;
}

void advance_clock(double milliseconds) {
  const std::lock_guard lock(queue().mutex);
  queue().clock += milliseconds;
}

}  // namespace openrnn::stand_in
