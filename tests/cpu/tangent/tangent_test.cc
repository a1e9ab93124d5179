#include "conformance/support/difference.h"
#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "openrnn/engine_tangent.h"
#include "reference/reference.h"

namespace openrnn::conformance {
namespace {

using Parts = std::vector<std::pair<std::string, Array>>;

// What of v is not 0, whether H v of x is asked for, and whether masks are random.
struct Moves {
  bool x = true, params = true, wants_x = true, training = true;
};

// J v and H v of a case whose u and v are neither uniform nor 0.
Parts tangent_of(const Case& c, const Engine& engine, const Moves& moves = {}) {
  const Data at = make_data(c, 1), along = make_data(c, 2);
  const RnnSpec& s = c.spec;
  const auto filled = [&s](std::int64_t size) {
    return random_array(s.dtype, size, 5, 6, 1);  // overwritten
  };
  Parts parts{{"y", filled(c.seq_size(s.output_size()))},
              {"hn", filled(c.h_size())},
              {"cn", filled(c.c_size())},
              {"x", filled(c.seq_size(s.input_size))},
              {"h0", filled(c.h_size())},
              {"c0", filled(c.c_size())},
              {"params", filled(params_size(s))}};
  const auto state = [&c](const Array& values) { return c.null_states ? nullptr : values.data(); };
  const auto result = [&parts](std::size_t i) {
    return parts[i].second.size() ? parts[i].second.data() : nullptr;
  };
  engine.tangent(
      {.spec = s,
       .max_time = c.time,
       .batch = c.batch,
       .time_major = c.time_major,
       .sequence_lengths = c.lengths.empty() ? nullptr : c.lengths.data(),
       .training = moves.training,
       .dropout = kKey,
       .at = {at.x.data(), state(at.h0), state(at.c0), at.params.data()},
       .direction = {moves.x ? along.x.data() : nullptr, along.h0.data(), along.c0.data(),
                     moves.params ? along.params.data() : nullptr},
       .gradients = {at.dy.data(), at.dhn.data(), at.dcn.data()},
       .moved = {result(0), result(1), result(2)},
       .curvature = {moves.wants_x ? result(3) : nullptr, result(4), result(5), result(6)}});
  if (!moves.wants_x) parts.erase(parts.begin() + 3);
  return parts;
}

double largest(const Array& values) {
  double most = 0.0;
  for (std::int64_t k = 0; k < values.size(); ++k) {
    most = std::max(most, std::abs(element(values.view(), k)));
  }
  return most;
}

// Sums of both sides are of the same terms: differences are of rounding alone, which grows with the
// steps. Relative to the largest element of a part.
void expect_close(const Case& c, const Parts& found, const Parts& expected) {
  const bool wide = c.spec.dtype == DType::kFloat64;
  const double eps = wide ? 1e-11 : c.spec.dtype == DType::kFloat32 ? 3e-4 : 2e-2;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Array &mine = found[i].second, &theirs = expected[i].second;
    const double bound = eps * (largest(theirs) + 1e-3);
    for (std::int64_t k = 0; k < mine.size(); ++k) {
      ASSERT_NEAR(element(mine.view(), k), element(theirs.view(), k), bound)
          << found[i].first << " at " << k;
    }
  }
}

class Tangent : public testing::TestWithParam<Case> {};

TEST_P(Tangent, IsThatOfTheReference) {
  const Case& c = GetParam();
  if (!cpu().has_tangent(c.spec)) GTEST_SKIP() << "the reference's alone";
  for (const Moves moves : {Moves{}, Moves{.params = false}, Moves{.x = false, .wants_x = false},
                            Moves{.training = false}}) {
    expect_close(c, tangent_of(c, cpu(), moves), tangent_of(c, reference_engine(), moves));
  }
}

// In float64, where no kink is near: a clip or relu that one side passes and the other does not
// would be another function.
std::vector<Case> wide_cases() {
  std::vector<Case> cases;
  for (Case c : all_cases()) {
    if (!c.trains() || c.spec.compute.math != Math::kFloat32) continue;
    if (!cpu().has_tangent(c.spec)) continue;
    if (c.time * c.batch * c.spec.num_units > 40000) continue;
    c.spec.dtype = DType::kFloat64;
    cases.push_back(c);
  }
  return cases;
}

std::vector<Case> narrow_cases() {
  return {parse_case("lstm L2 U33 I17 B3 T7 bi f32 lengths", "rounding"),
          parse_case("gru L2 U17 I33 B5 T7 f32 lengths", "rounding"),
          parse_case("gru L1 U15 I7 B1 T9 f32 reset_before", "rounding"),
          parse_case("lstm L1 U16 I3 B2 T3 f16 peepholes", "half"),
          parse_case("gru L2 U7 I3 B2 T3 bi b16 lengths", "bfloat16"),
          parse_case("rnn_tanh L2 U7 I3 B2 T3 bi f16 lengths D0.5", "half")};
}

std::vector<Case> small_cases() {
  std::vector<Case> cases = difference_cases();
  std::erase_if(cases, [](const Case& c) { return !cpu().has_tangent(c.spec); });
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& at) { return test_name(at.param); }
INSTANTIATE_TEST_SUITE_P(Cases, Tangent, testing::ValuesIn(small_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Narrow, Tangent, testing::ValuesIn(narrow_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Grid, Tangent, testing::ValuesIn(wide_cases()), name_of);

TEST(TangentSpecs, EveryCaseHasOne) {
  for (const Case& c : difference_cases())
    EXPECT_TRUE(reference_engine().has_tangent(c.spec)) << c.text;
  for (const char* options :
       {"forget peepholes coupled clip", "reset_before", "no_bias", "one_bias", "P2 proj_clip"}) {
    const std::string mode = std::string(options) == "reset_before" ? "gru" : "lstm";
    EXPECT_TRUE(reference_engine().has_tangent(
        parse_case(mode + " L1 U3 I4 B1 T1 f32 " + options, "").spec));
  }
  RnnSpec other;
  other.mode = static_cast<RnnMode>(100);
  EXPECT_FALSE(reference_engine().has_tangent(other));
  other.mode = RnnMode::kGru;
  EXPECT_TRUE(reference_engine().has_tangent(other));
  other.activation = CellActivation{.kind = static_cast<CellActivationKind>(100)};
  EXPECT_FALSE(reference_engine().has_tangent(other));
}

TEST(TangentBits, OfThreadsAndInstructionSetsAreOne) {
  for (const char* text : {"lstm L2 U130 I65 B33 T5 bi f32 lengths", "gru L1 U33 I17 B3 T7 f64",
                           "gru L2 U15 I7 B5 T3 f32 reset_before"}) {
    const Case c = parse_case(text, "more than one vector, more than one thread");
    const int before = num_threads();
    const auto run = [&](std::string_view isa, int threads) {
      const ForcedIsa forced(isa);
      set_num_threads(threads);
      return tangent_of(c, cpu());
    };
    const Parts one = run(tested_isas(c.spec).front(), 1);
    for (const std::string_view isa : tested_isas(c.spec)) {
      const Parts other = run(isa, 3);
      for (std::size_t i = 0; i < one.size(); ++i) {
        const Array &a = one[i].second, &b = other[i].second;
        if (a.size() == 0) continue;
        EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0) << isa << one[i].first;
      }
    }
    set_num_threads(before);
  }
}

}  // namespace
}  // namespace openrnn::conformance
