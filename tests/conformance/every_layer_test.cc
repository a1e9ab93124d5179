// Outputs of every layer and cells of every step, for every engine.
#include <gtest/gtest.h>

#include "conformance/support/bounds.h"
#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/parts.h"

namespace openrnn::conformance {
namespace {

enum class How { kInference, kTraining, kSaving };

/// A call with everything asked for, each array filled with a wrong value first.
struct EveryLayer {
  ForwardBuffers out;
  std::vector<Array> outputs, cells;
  std::vector<void*> output_pointers, cell_pointers;

  explicit EveryLayer(const Case& c) : out(forward_buffers(c)) {
    const RnnSpec& s = c.spec;
    for (std::int64_t l = 0; l < s.num_layers; ++l) {
      outputs.push_back(random_array(s.dtype, c.seq_size(s.output_size()), 5, 6, 7));
      const std::int64_t cell = s.has_cell() ? c.seq_size(s.num_dirs() * s.num_units) : 0;
      cells.push_back(random_array(s.dtype, cell, 5, 6, 8));
    }
    for (Array& array : outputs) output_pointers.push_back(array.data());
    for (Array& array : cells) cell_pointers.push_back(array.data());
  }
  ForwardArgs args(const Case& c, const Data& d, std::shared_ptr<const PackedParams> params,
                   How how) {
    ForwardArgs args = forward_args(c, d, out, std::move(params), how != How::kInference);
    args.layer_outputs = output_pointers.data();
    args.layer_cells = c.spec.has_cell() ? cell_pointers.data() : nullptr;
    return args;
  }
  Result result() && {
    Result result;
    append_forward(result, "", std::move(out));
    for (std::size_t l = 0; l < outputs.size(); ++l) {
      result.parts.emplace_back("output " + std::to_string(l), std::move(outputs[l]));
      result.parts.emplace_back("cell " + std::to_string(l), std::move(cells[l]));
    }
    return result;
  }
};

void call(const Engine& engine, const ForwardArgs& args, How how) {
  if (how == How::kSaving) {
    engine.forward_saving(args);
  } else {
    engine.forward(args);
  }
}

Result run_every(const Engine& engine, const Case& c, const Data& d, How how) {
  EveryLayer all(c);
  const PackFor purpose = how == How::kSaving ? PackFor::kTraining : PackFor::kInference;
  call(engine, all.args(c, d, engine.pack(c.spec, d.params.view(), purpose), how), how);
  return std::move(all).result();
}

/// What those are by the reference's loops, with bounds.
Bounds every_bounds(const Case& c, const Data& d, How how) {
  Bounds bounds{rounding_of(c), {}};
  Bounded::rounding = bounds.rounding;
  const reference::Network net = reference::make_network(c.spec);
  const std::vector<Bounded> params = bounded_params(net, d);
  reference::Call at = reference_call(c);
  at.training = at.training && how != How::kInference;
  const auto found = reference::forward<Bounded>(
      net, at, {params.data(), d.x.view(), given(c, d.h0), given(c, d.c0)});
  for (std::size_t l = 0; l < net.layers; ++l) {
    const std::string number = std::to_string(l);
    const auto part = [&](auto member, std::size_t width) {
      return reference::every_step(net, at, found.tape, l, member, width);
    };
    bounds.parts.emplace_back("output " + number, part(&reference::Step<Bounded>::h, net.hidden));
    if (!c.spec.has_cell()) continue;
    bounds.parts.emplace_back("cell " + number, part(&reference::Step<Bounded>::c, net.units));
  }
  return bounds;
}

/// The columns of one direction in a row's last step, read out of a sequence array.
Array last_step(const Case& c, const Array& all, std::int64_t width, std::int64_t d,
                std::int64_t b) {
  const std::int64_t length = c.lengths.empty() ? c.time : c.lengths[static_cast<std::size_t>(b)];
  const std::int64_t t = d == 0 ? length - 1 : 0;
  const std::int64_t at = c.time_major ? t * c.batch + b : b * c.time + t;
  return take(all, {1, c.seq_size(1) * c.spec.num_dirs(), width, at * c.spec.num_dirs() + d, 1});
}

/// Compares the steps that end each row with hn or cn.
void expect_ends(const Case& c, const Result& all, const std::string& name,
                 const std::string& state, std::int64_t width) {
  const std::int64_t planes = c.spec.num_pseudo_layers();
  Result expected, found;
  for (std::int64_t b = 0; b < c.batch && c.time > 0; ++b) {
    if (!c.lengths.empty() && c.lengths[static_cast<std::size_t>(b)] == 0) continue;
    const Array row = take(all[state], row_cut(c, planes, width, b));
    for (std::int64_t p = 0; p < planes; ++p) {
      const std::int64_t l = p / c.spec.num_dirs(), d = p % c.spec.num_dirs();
      const std::string part = name + std::to_string(l);
      expected.parts.emplace_back(part, take(row, {1, planes, width, p, 1}));
      found.parts.emplace_back(part, last_step(c, all[part], width, d, b));
    }
  }
  EXPECT_EQ(first_difference(expected, found), "") << c.text;
}

void expect_zero_padding(const Case& c, const Array& all, std::int64_t width) {
  for (std::int64_t b = 0; b < c.batch && !c.lengths.empty(); ++b) {
    for (std::int64_t t = c.lengths[static_cast<std::size_t>(b)]; t < c.time; ++t) {
      const std::int64_t at = c.time_major ? t * c.batch + b : b * c.time + t;
      for (std::int64_t k = 0; k < width; ++k) {
        ASSERT_EQ(element(all.view(), at * width + k), 0.0) << c.text << " row " << b;
      }
    }
  }
}

/// Training without a gradient is dropout alone.
std::vector<How> ways_of(const Case& c) {
  if (!c.trains()) return {How::kInference, How::kTraining};
  return {How::kInference, How::kTraining, How::kSaving};
}

class EveryStep : public testing::TestWithParam<Case> {};

TEST_P(EveryStep, FitsTheOtherResults) {
  const Case& c = GetParam();
  const RnnSpec& s = c.spec;
  if (tests_gpu() && !pretends()) GTEST_SKIP() << "a GPU's bits depend on how a call is cut";
  const Data d = make_data(c);
  for (const std::string& name : tested_engines()) {
    const Engine& subject = engine(name);
    for (const How how : ways_of(c)) {
      SCOPED_TRACE(name + " call " + std::to_string(static_cast<int>(how)));
      const Result all = run_every(subject, c, d, how);
      ForwardBuffers plain = forward_buffers(c);
      const auto packed =
          subject.pack(s, d.params.view(), c.trains() ? PackFor::kTraining : PackFor::kInference);
      call(subject, forward_args(c, d, plain, packed, how != How::kInference), how);
      Result expected;
      append_forward(expected, "", std::move(plain));
      EXPECT_EQ(first_difference(expected, all), "") << "asking changed what is not asked for";
      const std::string last = "output " + std::to_string(s.num_layers - 1);
      Result y;
      y.parts.emplace_back(last, all[last]);
      EXPECT_EQ(first_difference(y, expected), "");
      expect_ends(c, all, "output ", "hn", s.hidden_size());
      if (s.has_cell()) expect_ends(c, all, "cell ", "cn", s.num_units);
      for (std::int64_t l = 0; l < s.num_layers; ++l) {
        expect_zero_padding(c, all["output " + std::to_string(l)], s.output_size());
        if (!s.has_cell()) continue;
        expect_zero_padding(c, all["cell " + std::to_string(l)], s.num_dirs() * s.num_units);
      }
    }
  }
}

TEST_P(EveryStep, AgreesWithTheReference) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  for (const How how : ways_of(c)) {
    const Bounds bounds = every_bounds(c, d, how);
    for (const std::string& name : tested_engines()) {
      EXPECT_EQ(compare(bounds, run_every(engine(name), c, d, how)).failure, "") << name;
    }
  }
}

TEST_P(EveryStep, DependsOnNeitherInstructionSetNorThreads) {
  const Case& c = GetParam();
  if (tests_gpu()) GTEST_SKIP() << "a promise of the cpu engine";
  const Data d = make_data(c);
  const auto run = [&](std::string_view isa, int threads) {
    const ForcedIsa forced(isa);
    const ForcedThreads on(threads);
    return run_every(cpu(), c, d, How::kTraining);
  };
  const Result expected = run("scalar", 1);
  for (const std::string_view isa : tested_isas(c.spec)) {
    if (kind_on(isa, c.spec) != kind_on("scalar", c.spec)) continue;
    EXPECT_EQ(first_difference(expected, run(isa, 1)), "") << isa;
    EXPECT_EQ(first_difference(expected, run(isa, 3)), "") << isa << " on three threads";
  }
}

std::vector<Case> cases() {
  // A stand-in runs the cells of a step one by one, in loops.
  std::vector<Case> list = pretends() ? some_cases(21) : some_cases(7, 2);
  // Enough work that threads divide it, by rows, by directions and by panels.
  for (const char* text :
       {"lstm L2 U33 I17 B130 T3 f32 lengths", "lstm L2 U130 I33 B1 T7 bi f32",
        "lstm L2 U130 I3 B2 T9 bi f16 lengths batch_major", "lstm L1 U130 I130 B1 T17 f64 clip",
        "lstm L3 U130 I33 B3 T5 P33 f32 lengths D0.5", "gru L3 U130 I33 B3 T5 f16 D0.5",
        "lstm L2 U33 I17 B3 T5 P9 b16 lengths"}) {
    if (!reduced()) list.push_back(parse_case(text, "threads"));
  }
  for (const char* text :
       {"lstm L3 U33 I17 B3 T5 P7 f32 lengths D0.5 bf16", "gru L2 U130 I33 B1 T7 bi f32 bf16",
        "lstm L2 U33 I17 B3 T5 f16 stored_int8 lengths", "gru L2 U130 I3 B2 T9 f32 stored_int8",
        "rnn_tanh L3 U17 I17 B5 T4 skip f32 stored_bfloat16", "gru L2 U7 I3 B3 T4 bi f32 bf16x3"}) {
    if (!tests_gpu()) list.push_back(parse_case(text, "arithmetic"));
  }
  return tests_gpu() ? of_cudnn(list) : list;
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryStep, testing::ValuesIn(cases()), [](const auto& at) {
  return "n" + std::to_string(at.index) + "_" + test_name(at.param);
});

TEST(EveryLayer, NullEntriesAreLeftOut) {
  const Case c = parse_case("lstm L3 U17 I3 B5 T4 bi f32 lengths D0.5", "some_of_the_layers");
  const Data d = make_data(c);
  for (const std::string& name : tested_engines()) {
    const Engine& subject = engine(name);
    const Result expected = run_every(subject, c, d, How::kTraining);
    EveryLayer some(c);
    const Array untouched = some.outputs[0];
    const auto packed = subject.pack(c.spec, d.params.view(), PackFor::kInference);
    some.output_pointers[0] = some.output_pointers[2] = some.cell_pointers[1] = nullptr;
    subject.forward(some.args(c, d, packed, How::kTraining));
    Result found, wanted;
    found.parts.emplace_back("output 0", some.outputs[0]);
    wanted.parts.emplace_back("output 0", untouched);
    found.parts.emplace_back("output 1", some.outputs[1]);
    wanted.parts.emplace_back("output 1", expected["output 1"]);
    for (const std::size_t l : {std::size_t{0}, std::size_t{2}}) {
      const std::string part = "cell " + std::to_string(l);
      found.parts.emplace_back(part, some.cells[l]);
      wanted.parts.emplace_back(part, expected[part]);
    }
    EXPECT_EQ(first_difference(wanted, found), "") << name;
  }
}

TEST(EveryLayer, CellsOfAModeWithoutThemAreRefused) {
  const Case c = parse_case("gru L2 U7 I3 B3 T4 f32", "no_cells");
  const Data d = make_data(c);
  for (const std::string& name : tested_engines()) {
    EveryLayer all(c);
    const auto packed = engine(name).pack(c.spec, d.params.view(), PackFor::kTraining);
    ForwardArgs args = all.args(c, d, packed, How::kInference);
    args.layer_cells = all.cell_pointers.data();
    for (const How how : {How::kInference, How::kSaving}) {
      try {
        call(engine(name), args, how);
        ADD_FAILURE() << "expected an error of " << name;
      } catch (const ArgumentError& error) {
        const std::string what = how == How::kSaving ? "[forward_saving]" : "[forward]";
        EXPECT_EQ(error.what(), what + " layer_cells is given, expected null for gru");
      }
    }
  }
}

}  // namespace
}  // namespace openrnn::conformance
