// Layers shifted in time, forward and backward: the bits of one thread, whatever the chunks.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "cpu/backward/backward_scratch.h"
#include "cpu/steps/threads.h"

namespace openrnn::cpu {
namespace {

using conformance::Case;
using conformance::Data;
using conformance::ForcedThreads;
using conformance::Result;

/// Layers are shifted in time by chunks of so many steps while it lives.
class ForcedWaves {
 public:
  explicit ForcedWaves(std::int64_t steps) : before_(assume_wave_steps(steps)) {}
  ~ForcedWaves() { assume_wave_steps(before_); }
  ForcedWaves(const ForcedWaves&) = delete;
  ForcedWaves& operator=(const ForcedWaves&) = delete;

 private:
  std::int64_t before_;
};

// Gradients of rows cost one of all parameters each.
bool few_rows(const Case& c) { return c.batch <= 3; }

struct Wanted {
  bool dx = true, rows = false;
  std::int64_t recompute = 0;
};

std::unique_ptr<SavedForward> save(const Case& c, const Data& d, std::int64_t recompute,
                                   Result& result) {
  const Engine& cpu = conformance::cpu();
  const auto packed = cpu.pack(c.spec, d.params.view(), PackFor::kTraining);
  conformance::ForwardBuffers out = conformance::forward_buffers(c);
  ForwardArgs args = conformance::forward_args(c, d, out, packed, true);
  args.recompute = recompute;
  auto saved = cpu.forward_saving(args);
  append_forward(result, "", std::move(out));
  return saved;
}

/// What a training step computes, and of whose layers the gradients are told, in which order.
Result train(const Case& c, const Data& d, const Wanted& wanted = {}) {
  Result result;
  const auto saved = save(c, d, wanted.recompute, result);
  const RnnSpec& s = c.spec;
  const auto array = [](DType dtype, std::int64_t size) {
    return conformance::random_array(dtype, size, 5, 6, 9);
  };
  Array dx = array(s.dtype, c.seq_size(s.input_size)), dh0 = array(s.dtype, c.h_size());
  Array dc0 = array(s.dtype, c.c_size()), dparams = array(s.dtype, params_size(s));
  Array rows = array(s.dtype, wanted.rows ? c.batch * params_size(s) : 0);
  Array norms = array(DType::kFloat64, c.batch), told(DType::kFloat64, {s.num_layers});
  std::size_t layers = 0;
  const std::function<void(std::int64_t)> tell = [&](std::int64_t layer) {
    told.as<double>()[layers++] = static_cast<double>(layer);
  };
  BackwardArgs args{.saved = saved.get(), .dy = d.dy.data(), .dhn = d.dhn.data()};
  args.dx = wanted.dx ? dx.data() : nullptr;
  args.dh0 = dh0.data();
  if (s.has_cell()) args.dcn = d.dcn.data(), args.dc0 = dc0.data();
  args.dparams = dparams.data();
  if (wanted.rows) {
    if (wanted.recompute == 0) args.row_norms = norms.as<double>().data();
    args.row_dparams = rows.data();
    args.last_row = c.batch;
  }
  args.layer_done = &tell;
  conformance::cpu().backward(args);
  for (auto& [name, part] : {std::pair("dx", &dx), std::pair("dh0", &dh0), std::pair("dc0", &dc0),
                             std::pair("dparams", &dparams), std::pair("rows", &rows),
                             std::pair("norms", &norms), std::pair("told", &told)}) {
    result.parts.emplace_back(name, std::move(*part));
  }
  return result;
}

/// Groups of layers that the backward pass of a training step has.
template <class T>
int groups_of(const Case& c, const Data& d) {
  const auto packed = conformance::cpu().pack(c.spec, d.params.view(), PackFor::kTraining);
  const auto& weights = static_cast<const CpuPacked<T>&>(*packed);
  const ForwardArgs args = conformance::args_without_arrays(c, packed, true);
  ThreadLease lease(wanted_threads(weights, args, most_threads(0)));
  return plan_for(weights, args, lease, 1, can_shift_backward(weights, args)).layer_groups;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&list](const std::string& text) {
    list.push_back(conformance::parse_case(text, "layers"));
  };
  for (const std::string mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    if (conformance::reduced() && mode != "lstm") continue;
    add(mode + " L4 U33 I17 B1 T100 f32");
    add(mode + " L2 U65 I65 B3 T33 f64 lengths batch_major skip");
    add(mode + " L5 U17 I17 B16 T33 f32 D0.5 lengths");
    add(mode + " L3 U33 I3 B3 T33 f16 D0.3 lengths");
    add(mode + " L3 U65 I15 B16 T7 b16 null_states");
    add(mode + " L4 U130 I130 B3 T2 f32 lengths P33");
    add(mode + " L2 U300 I300 B3 T1 f32");
    add(mode + " L3 U33 I33 B2 T61 f32 drop_state=0.5 D0.25");
    add(mode + " L2 U65 I33 B3 T33 f32 lengths bf16");
    add(mode + " L3 U65 I33 B16 T7 f32 bf16x3");
  }
  for (const char* options :
       {"clip forget gate_clip", "peepholes coupled", "peepholes P9 proj_clip lengths",
        "norm=products cell_norm=output lengths", "norm=products P17 D0.5", "one_bias act=relu",
        "zone=0.25 zone_cell=0.5 lengths", "drop_candidate=0.5 P7", "drop_state=0.5 no_bias"}) {
    add(std::string("lstm L3 U33 I17 B3 T33 f32 ") + options);
  }
  for (const char* options : {"reset_before lengths", "reset_before drop_state=0.5 D0.5",
                              "norm=products lengths", "zone=0.5 P9 one_bias"}) {
    add(std::string("gru L4 U33 I33 B3 T37 f32 ") + options);
  }
  return list;
}

class Shifted : public ::testing::TestWithParam<Case> {};

TEST_P(Shifted, ChangeNoBit) {
  const Case& c = GetParam();
  const Data d = conformance::make_data(c);
  Result expected;
  {
    const ForcedThreads one(1);
    expected = train(c, d, {.rows = few_rows(c)});
  }
  for (const int threads : {2, 3, 4}) {
    const ForcedThreads many(threads);
    for (const std::int64_t steps : {1, 5, 40}) {
      if (conformance::reduced() && steps != 5) continue;
      const ForcedWaves waves(steps);
      const bool wide = c.spec.dtype == DType::kFloat64;
      const int groups = wide ? groups_of<double>(c, d) : groups_of<float>(c, d);
      if (threads == 2) {
        EXPECT_EQ(groups, 2);
      }
      EXPECT_EQ(first_difference(expected, train(c, d, {.rows = few_rows(c)})), "")
          << threads << " threads, " << steps << " steps";
    }
  }
}

TEST_P(Shifted, ChangeNoBitOfAPassThatComputesForwardAgain) {
  const Case& c = GetParam();
  const Data d = conformance::make_data(c);
  const auto compute = [&] { return train(c, d, {.rows = few_rows(c), .recompute = 32}); };
  Result expected;
  {
    const ForcedThreads one(1);
    expected = compute();
  }
  for (const int threads : {2, 4}) {
    const ForcedThreads many(threads);
    const ForcedWaves waves(5);
    EXPECT_EQ(first_difference(expected, compute()), "") << threads << " threads";
  }
}

TEST_P(Shifted, WantNoGradientOfTheInput) {
  const Case& c = GetParam();
  const Data d = conformance::make_data(c);
  Result expected;
  {
    const ForcedThreads one(1);
    expected = train(c, d, {.dx = false});
  }
  const ForcedThreads three(3);
  const ForcedWaves waves(7);
  EXPECT_EQ(first_difference(expected, train(c, d, {.dx = false})), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, Shifted, ::testing::ValuesIn(cases()),
                         [](const auto& at) { return conformance::test_name(at.param); });

// Who is delayed inside its piece, and in which one of a call.
std::atomic<int> late_member{1}, pieces_until_late{0};
void be_late(int member) {
  if (member != late_member) return;
  if (pieces_until_late.fetch_sub(1) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// A caller whose workers are late does what every group has left. Of how many such calls that is
// seen is a matter of who else is at work.
TEST(ShiftedLayers, AreFinishedByACallerThatGoesOnAlone) {
  const Case c = conformance::parse_case("lstm L4 U33 I17 B2 T40 f32 D0.5 lengths", "alone");
  const Data d = conformance::make_data(c);
  const ForcedThreads three(3);
  const ForcedWaves waves(5);
  const Result expected = train(c, d);
  hook_pieces(be_late);
  int alone = 0;
  for (int attempt = 0; attempt < 20 && alone == 0; ++attempt) {
    for (int piece = 0; piece < 14; ++piece) {
      for (const int member : {0, 1, 2}) {
        forget_contention();
        late_member = member;
        Result found;
        const auto saved = save(c, d, 0, found);
        pieces_until_late = piece;
        const int before = jobs_finished_alone();
        heed_contention(true);
        for (auto& part : run_backward(conformance::cpu(), c, d, *saved).parts) {
          found.parts.push_back(std::move(part));
        }
        heed_contention(false);
        alone += jobs_finished_alone() - before;
        EXPECT_EQ(first_difference(found, expected), "") << member << " late in " << piece;
      }
    }
  }
  hook_pieces(nullptr);
  forget_contention();
  EXPECT_GT(alone, 0);
}

// A layer's gradients are told when they are there for good, the last layer first.
TEST(ShiftedLayers, AreToldOfWhenTheirGradientsAreThere) {
  const Case c = conformance::parse_case("lstm L4 U33 I17 B2 T40 f32", "told");
  const Data d = conformance::make_data(c);
  const ForcedThreads two(2);
  const ForcedWaves waves(6);
  Result forward;
  const auto saved = save(c, d, 0, forward);
  Array dparams(c.spec.dtype, {params_size(c.spec)});
  const ParamsLayout layout(c.spec);
  // Others write the gradients of the layers below meanwhile.
  const auto gradients_of = [&](std::int64_t layer) {
    std::vector<float> values;
    for (const auto& regions : {layout.weights(), layout.biases()}) {
      for (const ParamRegion& region : regions) {
        if (region.layer != layer) continue;
        const float* const first = dparams.as<float>().data() + region.offset;
        values.insert(values.end(), first, first + region.size());
      }
    }
    return values;
  };
  std::vector<std::int64_t> told;
  std::vector<std::vector<float>> then;
  const std::function<void(std::int64_t)> tell = [&](std::int64_t layer) {
    told.push_back(layer);
    then.push_back(gradients_of(layer));
  };
  BackwardArgs args{.saved = saved.get(), .dy = d.dy.data()};
  args.dparams = dparams.data();
  args.layer_done = &tell;
  conformance::cpu().backward(args);
  EXPECT_EQ(told, (std::vector<std::int64_t>{3, 2, 1, 0}));
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(then[i], gradients_of(told[i])) << told[i];
  }
}

// Gradients and transposed weights of every layer take little memory, or layers take turns.
TEST(ShiftedLayers, TakeLittleMemory) {
  const auto bytes = [](const std::string& text, bool shifts) {
    const Case c = conformance::parse_case(text, "memory");
    const Data d = conformance::make_data(c);
    const auto packed = conformance::cpu().pack(c.spec, d.params.view(), PackFor::kTraining);
    const auto& weights = static_cast<const CpuPacked<float>&>(*packed);
    const ForwardArgs args = conformance::args_without_arrays(c, packed, true);
    Carver measure;
    BackwardScratch<float>::carve(
        measure,
        {.packed = weights, .call = args, .threads = 2, .between = true, .shifts = shifts});
    return std::pair(can_shift_backward(weights, args), measure.used());
  };
  const std::string small = "lstm L4 U64 I64 B1 T100 f32", tall = "lstm L4 U64 I64 B1 T20000 f32";
  EXPECT_TRUE(bytes(small, true).first);
  EXPECT_LE(bytes(small, true).second - bytes(small, false).second,
            static_cast<std::size_t>(kShiftedBytes));
  EXPECT_FALSE(bytes(tall, false).first);
  EXPECT_FALSE(bytes("lstm L4 U512 I512 B1 T10 f32", false).first);
}

}  // namespace
}  // namespace openrnn::cpu
