// The bytes that a call holds for its gradient are those that are told beforehand, and recomputing
// makes those, and what backward takes, grow with the number and the size of chunks alone, or by
// one layer of a bidirectional network.
#include <gtest/gtest.h>

#include "conformance/support/run.h"
#include "cpu/cpu_engine.h"
#include "cpu/memory/pool.h"

namespace openrnn::cpu {
namespace {

using conformance::Case;
using conformance::Data;

Case of_time(const std::string& text, std::int64_t time) {
  return conformance::parse_case(text + " T" + std::to_string(time), "memory");
}

struct Held {
  std::int64_t told, held, backward;
};

Held measure(const Case& c, std::int64_t recompute) {
  const Data d = conformance::make_data(c);
  const Engine& engine = cpu_engine();
  MemoryPool& pool = MemoryPool::process();
  auto out = conformance::forward_buffers(c);
  auto args = conformance::forward_args(
      c, d, out, engine.pack(c.spec, d.params.view(), {PackFor::kTraining, 1}), true);
  args.max_threads = 1;
  args.recompute = recompute;
  const std::size_t before = pool.used_bytes();
  const auto saved = engine.forward_saving(args);
  const std::size_t held = pool.used_bytes() - before;
  pool.clear();
  conformance::run_backward(engine, c, d, *saved);
  return {*engine.saved_bytes(c.spec, c.time, c.batch, recompute), static_cast<std::int64_t>(held),
          static_cast<std::int64_t>(pool.idle_bytes())};
}

class Recomputed : public testing::TestWithParam<const char*> {};

TEST_P(Recomputed, HoldsWhatIsTold) {
  for (const std::int64_t recompute : {std::int64_t{0}, kRecomputeRoot, std::int64_t{96}}) {
    for (const std::int64_t time : {1, 70, 1100}) {
      const Held found = measure(of_time(GetParam(), time), recompute);
      EXPECT_GE(found.held, found.told);
      // Blocks of the pool come in four sizes an octave.
      EXPECT_LE(found.held, found.told + found.told / 4 + 256) << time << " by " << recompute;
    }
  }
}

TEST_P(Recomputed, TakesMemoryForOneChunkInBackward) {
  const Case small = of_time(GetParam(), 128), large = of_time(GetParam(), 1024);
  const RnnSpec& s = small.spec;
  const std::int64_t element = s.dtype == DType::kFloat64 ? 8 : 4;
  const bool both = s.num_dirs() == 2;
  // Of a bidirectional LSTM over all steps: a layer's outputs, its backward direction's gates,
  // cells and gradients of gates, and between layers what enters it and the gradient of that.
  const std::int64_t values = 3 * s.output_size() + 9 * s.num_units;
  const std::int64_t layer = both ? (1024 - 128) * large.batch * values * element : 0;
  const std::int64_t growth = measure(large, 32).backward - measure(small, 32).backward;
  // Both sides are rounded up to sizes of blocks.
  EXPECT_LE(growth, layer * 4 / 3);
  if (both) return;
  const std::int64_t kept = measure(large, 0).backward - measure(small, 0).backward;
  EXPECT_GT(kept, 4 * growth);
}

INSTANTIATE_TEST_SUITE_P(Networks, Recomputed,
                         testing::Values("lstm L2 U32 I8 B4 f32 null_states",
                                         "gru L1 U32 I8 B4 f64 null_states",
                                         "lstm L2 U32 I8 B4 bi f32 null_states",
                                         "rnn_tanh L3 U24 I8 B4 f16 null_states"));

}  // namespace
}  // namespace openrnn::cpu
