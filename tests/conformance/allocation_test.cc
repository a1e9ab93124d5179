// A prepared session and a pool of streams allocate nothing, and on one thread make no system call.
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPENRNN_COUNTS_ALLOCATIONS 0  // the sanitizer has taken malloc's place
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OPENRNN_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef OPENRNN_COUNTS_ALLOCATIONS
#define OPENRNN_COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<bool> counting{false};
std::atomic<long> count{0};

[[maybe_unused]] void note() {
  if (counting.load(std::memory_order_relaxed)) count.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

#if OPENRNN_COUNTS_ALLOCATIONS
// operator new ends in one of these too.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the C library's own names.
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
// NOLINTEND(bugprone-reserved-identifier)
void* malloc(std::size_t size) {
  note();
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  note();
  return __libc_calloc(n, size);
}
void* realloc(void* old, std::size_t size) {
  note();
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  note();
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
}
#endif

namespace openrnn::conformance {
namespace {

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const char* mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const char* rest : {" L2 U17 I3 B5 T6 f32", " L1 U33 I7 B3 T5 bi f64 lengths batch_major",
                             " L3 U16 I16 B1 T1 f32", " L1 U130 I130 B9 T4 skip f16 lengths",
                             " L2 U33 I7 B3 T4 bi b16 lengths", " L2 U130 I33 B2 T7 bi f32",
                             " L1 U130 I130 B1 T17 f32"}) {
      list.push_back(parse_case(mode + std::string(rest), "prepared"));
    }
  }
  list.push_back(parse_case("lstm L2 U17 I3 B5 T6 P5 clip f32 lengths", "projection"));
  for (const char* arithmetic :
       {" bf16", " bf16x3", " stored_float16", " stored_bfloat16", " stored_int8"}) {
    for (const char* text : {"lstm L2 U130 I33 B2 T7 P5 bi f32", "gru L1 U130 I130 B1 T17 f32",
                             "rnn_tanh L2 U17 I3 B5 T6 f16 lengths batch_major"}) {
      list.push_back(parse_case(text + std::string(arithmetic), "arithmetic"));
    }
  }
  return list;
}

/// A session that is prepared and has run a smaller call, so that whatever starts late has started.
struct Prepared {
  Case c;
  Data d;
  ForwardBuffers out;
  InferenceSession session;
  int max_threads = 0;

  explicit Prepared(const Case& given)
      : c(given),
        d(make_data(c)),
        out(forward_buffers(c)),
        session(std::make_shared<PackedModel>(c.spec, d.params.view()), {.max_threads = 0}) {
    session.prepare(c.batch, c.time);
  }
  void run() {
    ForwardArgs args = forward_args(c, d, out, nullptr, false);
    args.max_threads = max_threads;
    session.run(args);
  }
};

/// Prepared once more for longer calls of one row, which takes nothing from the room that there
/// was.
struct PreparedLonger : Prepared {
  explicit PreparedLonger(const Case& given) : Prepared(given) { session.prepare(1, c.time + 1); }
};

/// The same, asking for what every layer leaves.
struct PreparedLayers : Prepared {
  Array outputs, cells;
  std::vector<void*> output_pointers, cell_pointers;

  explicit PreparedLayers(const Case& given)
      : Prepared(given),
        outputs(c.spec.dtype, {c.spec.num_layers, c.seq_size(c.spec.output_size())}),
        cells(c.spec.dtype, {c.spec.num_layers, c.seq_size(c.spec.num_dirs() * c.spec.num_units)}) {
    const auto layers = static_cast<std::size_t>(c.spec.num_layers);
    for (std::size_t l = 0; l < layers; ++l) {
      const auto part = [&](Array& all) {
        return static_cast<void*>(static_cast<char*>(all.data()) + l * (all.size_bytes() / layers));
      };
      output_pointers.push_back(part(outputs));
      cell_pointers.push_back(part(cells));
    }
  }
  void run() {
    ForwardArgs args = forward_args(c, d, out, nullptr, false);
    args.layer_outputs = output_pointers.data();
    if (c.spec.has_cell()) args.layer_cells = cell_pointers.data();
    session.run(args);
  }
};

/// Streams that join, step, are read and leave, all within the limits of their pool.
struct PreparedStreams {
  Case c;
  Data d;
  Array y, h, cell;
  StreamPool pool;
  std::vector<StreamId> ids;

  explicit PreparedStreams(const Case& given, int threads = 0)
      : c(given),
        d(make_data(c)),
        y(forward_buffers(c).y),
        h(c.spec.dtype, {c.spec.num_pseudo_layers() * c.spec.hidden_size()}),
        cell(c.spec.dtype, {c.spec.num_pseudo_layers() * c.spec.num_units}),
        pool(std::make_shared<PackedModel>(c.spec, d.params.view()),
             {.streams = c.batch + 1, .batch = c.batch, .time = c.time, .threads = threads}),
        ids(static_cast<std::size_t>(c.batch)) {}
  void run() {
    void* const cells = c.spec.has_cell() ? cell.data() : nullptr;
    for (StreamId& id : ids) id = pool.join(h.data(), cells);
    pool.step({.ids = ids,
               .max_time = c.time,
               .time_major = c.time_major,
               .sequence_lengths = c.lengths.empty() ? nullptr : c.lengths.data(),
               .x = d.x.data(),
               .y = y.data()});
    pool.read(ids[0], h.data(), cells);
    pool.reset(ids[0]);
    for (const StreamId id : ids) pool.leave(id);
  }
};

TEST(Allocation, ACountedCallIsCounted) {
  if (!OPENRNN_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has taken malloc's place";
  count = 0;
  counting = true;
  const AlignedBuffer buffer(100);
  const std::vector<int> values(10);
  counting = false;
  EXPECT_EQ(count.load(), 2);
}

template <class Subject>
void expect_no_allocation() {
  for (const int threads : {1, 2}) {
    const ForcedThreads forced(threads);
    for (const Case& c : cases()) {
      Subject prepared(c);
      // Threads start with the first call that needs them.
      if (threads > 1) prepared.run();
      count = 0;
      counting = true;
      prepared.run();
      counting = false;
      EXPECT_EQ(count.load(), 0) << c.text << " on " << threads << " threads";
    }
  }
}

TEST(Allocation, APreparedSessionMakesNone) {
  if (!OPENRNN_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has taken malloc's place";
  expect_no_allocation<Prepared>();
}

TEST(Allocation, ASecondPreparationKeepsTheRoomOfTheFirst) {
  if (!OPENRNN_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has taken malloc's place";
  expect_no_allocation<PreparedLonger>();
}

TEST(Allocation, OutputsOfEveryLayerMakeNone) {
  if (!OPENRNN_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has taken malloc's place";
  expect_no_allocation<PreparedLayers>();
}

TEST(Allocation, APoolOfStreamsMakesNone) {
  if (!OPENRNN_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has taken malloc's place";
  expect_no_allocation<PreparedStreams>();
}

/// Whether `call` ends without a system call: a child that makes one is killed.
template <class Call>
bool makes_no_system_call(Call call) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    call();
    syscall(SYS_exit, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Allocation, OneThreadMakesNoSystemCall) {
  if (!OPENRNN_COUNTS_ALLOCATIONS) GTEST_SKIP() << "sanitizers make system calls of their own";
  if (!makes_no_system_call([] {})) GTEST_SKIP() << "this kernel forbids seccomp";
  ASSERT_FALSE(makes_no_system_call([] { getppid(); }));
  const ForcedThreads forced(1);
  for (const Case& c : cases()) {
    Prepared prepared(c);
    EXPECT_TRUE(makes_no_system_call([&] { prepared.run(); })) << c.text;
    PreparedLayers layers(c);
    EXPECT_TRUE(makes_no_system_call([&] { layers.run(); })) << c.text;
    PreparedStreams streams(c);
    EXPECT_TRUE(makes_no_system_call([&] { streams.run(); })) << c.text;
  }
}

TEST(Allocation, ACallOnOneThreadOfSeveralMakesNoSystemCall) {
  if (!OPENRNN_COUNTS_ALLOCATIONS) GTEST_SKIP() << "sanitizers make system calls of their own";
  if (!makes_no_system_call([] {})) GTEST_SKIP() << "this kernel forbids seccomp";
  const ForcedThreads forced(2);
  const Case large = parse_case("lstm L2 U130 I33 B9 T7 f32", "enough_for_threads");
  Prepared prepared(large);
  EXPECT_FALSE(makes_no_system_call([&] { prepared.run(); })) << "two threads must be woken";
  prepared.max_threads = 1;
  EXPECT_TRUE(makes_no_system_call([&] { prepared.run(); }));
  PreparedStreams streams(large, 1);
  EXPECT_TRUE(makes_no_system_call([&] { streams.run(); }));
}

}  // namespace
}  // namespace openrnn::conformance
