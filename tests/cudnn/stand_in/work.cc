#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>

#include "cudnn/stand_in/order/order.h"

namespace openrnn::stand_in {
namespace {

struct Item {
  std::function<void()> work;           // none: a mark
  std::shared_ptr<Mark> passes, waits;  // null: none
  Piece piece = {};                     // of the work
  std::function<bool()> ready = {};     // none: it always is
};

struct Machine {
  std::recursive_mutex mutex;
  std::map<Stream, std::deque<Item>> queues;
  std::string broken;
  double clock = 0.0;
  long calls = 0, waits = 0, idle_waits = 0;
  std::map<std::string, long> calls_of;
};

Machine& machine() {
  static auto* all = new Machine;
  return *all;
}

thread_local std::vector<int> contexts;  // the GPU of each that was pushed

void break_down(const std::string& why) {
  if (!machine().broken.empty()) return;
  machine().broken = why;
  std::fprintf(stderr, "the stand-in of the GPU: %s\n", why.c_str());
}

void run(const std::function<void()>& work) {
  if (!machine().broken.empty()) return;
  try {
    work();
  } catch (const std::exception& error) {
    break_down(error.what());
  }
}

// Up to the mark; null: all.
void run_stream(Stream stream, const Mark* until) {
  std::deque<Item>& queue = machine().queues[stream];
  while (!queue.empty() && !(until && until->passed)) {
    if (queue.front().ready && !queue.front().ready()) return;
    const Item next = std::move(queue.front());
    queue.pop_front();
    if (next.waits && !next.waits->passed) run_stream(next.waits->stream, next.waits.get());
    if (next.work) {
      const Running now(next.piece);
      run(next.work);
    }
    if (!next.passes) continue;
    next.passes->passed = true;
    next.passes->time = machine().clock;
  }
}

void put(Stream stream, Item item) {
  machine().queues[stream].push_back(std::move(item));
  if (setting("STAND_IN_DEFERRED", 0) == 0) run_stream(stream, nullptr);
}

}  // namespace

void enqueue(Stream stream, std::function<void()> work) {
  const std::lock_guard lock(machine().mutex);
  if (record_work(stream, work)) return;
  put(stream, {std::move(work), nullptr, nullptr, next_piece(stream)});
}

void enqueue_when(Stream stream, std::function<bool()> ready, std::function<void()> work) {
  const std::lock_guard lock(machine().mutex);
  put(stream, {std::move(work), nullptr, nullptr, next_piece(stream), std::move(ready)});
}

std::shared_ptr<Mark> record(Stream stream) {
  const std::lock_guard lock(machine().mutex);
  auto mark = std::make_shared<Mark>(Mark{.stream = stream, .done = done_by(stream)});
  put(stream, {nullptr, mark, nullptr});
  return mark;
}

void wait_for(Stream stream, std::shared_ptr<Mark> mark) {
  const std::lock_guard lock(machine().mutex);
  learn(stream, mark->done);
  put(stream, {nullptr, nullptr, std::move(mark)});
}

// After a wait of the host.
static void count_wait() {
  ++machine().waits;
  const auto& queues = machine().queues;
  machine().idle_waits += std::all_of(queues.begin(), queues.end(),
                                      [](const auto& each) { return each.second.empty(); });
}

void synchronize() {
  const std::lock_guard lock(machine().mutex);
  // The latest stream first: what does not wait for another one finds its work undone.
  for (auto each = machine().queues.rbegin(); each != machine().queues.rend(); ++each) {
    run_stream(each->first, nullptr);
    learn(done_by(each->first));
  }
  run(check_guards);
  count_wait();
}

void synchronize(Stream stream) {
  const std::lock_guard lock(machine().mutex);
  run_stream(stream, nullptr);
  learn(done_by(stream));
  run(check_guards);
  count_wait();
}

void synchronize(const std::shared_ptr<Mark>& mark) {
  const std::lock_guard lock(machine().mutex);
  if (mark) run_stream(mark->stream, mark.get());
  if (mark) learn(mark->done);
  run(check_guards);
  count_wait();
}

bool has_passed(const Mark& mark) {
  const std::lock_guard lock(machine().mutex);
  // What waits for another rank goes on by itself; nothing else moves by being asked.
  const std::deque<Item>& queue = machine().queues[mark.stream];
  const bool waits = !queue.empty() && queue.front().ready;
  if (waits && setting("STAND_IN_DEFERRED", 0) == 0) run_stream(mark.stream, &mark);
  if (mark.passed) learn(mark.done);
  return mark.passed;
}

long waits() { return machine().waits; }
long idle_waits() { return machine().idle_waits; }

const std::string& broken() { return machine().broken; }

long calls_of(const std::string& name) {
  const std::lock_guard lock(machine().mutex);
  return machine().calls_of[name];
}
void count_call(const std::string& name) {
  const std::lock_guard lock(machine().mutex);
  ++machine().calls_of[name];
}

bool is_whole(const char* call) {
  const std::lock_guard lock(machine().mutex);
  count_call(call);
  if (++machine().calls == setting("STAND_IN_FAULT", 0)) {
    break_down(std::string("an injected fault in ") + call);
  }
  return machine().broken.empty();
}

bool has_context() { return !contexts.empty(); }
int current_gpu() { return contexts.back(); }
void push_context(int gpu) { contexts.push_back(gpu); }
bool pop_context() {
  if (contexts.empty()) return false;
  contexts.pop_back();
  return true;
}

double clock_now() {
  const std::lock_guard lock(machine().mutex);
  return machine().clock;
}

void advance_clock(double milliseconds) {
  const std::lock_guard lock(machine().mutex);
  machine().clock += milliseconds;
}

}  // namespace openrnn::stand_in
