// The kernels of zoneout on every instruction set, and that a network whose masks drop nothing is
// the one without them.
#include <gtest/gtest.h>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "cpu/isa/isa.h"

namespace openrnn::cpu {
namespace {

using conformance::Case;
using conformance::first_difference;
using conformance::parse_case;

TEST(ZoneoutKernels, KeepWhatIsMaskedAndDivideItsGradient) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (const std::string_view isa : available_isas()) {
    const conformance::ForcedIsa forced(isa);
    // What is not taken is not looked at.
    const std::vector<float> mask{0, 2, 0, 2, 2}, before{1, none, 3, 4, none};
    const std::vector<float> now{none, 7, none, 9, 10};
    std::vector<float> out(5), d{1, 2, 3, 4, 5}, passed(5);
    kernels().f32[kExact].zone_out({mask.data(), 0, 0, before.data(), now.data(), out.data(), 5});
    EXPECT_EQ(out, (std::vector<float>{1, 7, 3, 9, 10})) << isa;
    kernels().f32[kExact].zone_out_gradient({mask.data(), 0, 0, d.data(), passed.data(), 5});
    EXPECT_EQ(d, (std::vector<float>{0, 2, 0, 4, 5})) << isa;
    EXPECT_EQ(passed, (std::vector<float>{1, 0, 3, 0, 0})) << isa;
    std::vector<float> mixed{4, 8};
    kernels().f32[kExact].zone_out(
        {nullptr, 0.25F, 0.75F, out.data(), mixed.data(), mixed.data(), 2});
    EXPECT_EQ(mixed, (std::vector<float>{3.25F, 7.75F})) << isa;
    kernels().f32[kExact].zone_out_gradient({nullptr, 0.25F, 0.75F, d.data(), passed.data(), 2});
    EXPECT_EQ(d, (std::vector<float>{0, 1.5F, 0, 4, 5})) << isa;
    EXPECT_EQ(passed, (std::vector<float>{0, 0.5F, 3, 0, 0})) << isa;
  }
}

constexpr const char* kNetworks[] = {"lstm L2 U17 I3 B5 T4 bi f32 lengths",
                                     "lstm L1 U33 I3 B3 T4 P7 proj_clip peepholes f16",
                                     "gru L2 U15 I3 B5 T4 f64",
                                     "gru L1 U17 I3 B5 T4 reset_before f32 lengths",
                                     "rnn_tanh L1 U7 I3 B5 T4 bi f32",
                                     "rnn_relu L1 U9 I3 B5 T4 f32"};

TEST(StepMasks, AreOfTrainingAlone) {
  for (const std::string text : kNetworks) {
    for (const char* form : {" drop_state=0.5", " drop_candidate=0.5"}) {
      const Case plain = parse_case(text, "plain"), masked = parse_case(text + form, "masked");
      const conformance::Data d = make_data(plain);
      const auto engines = {"cpu", "reference"};
      for (const char* name : engines) {
        EXPECT_EQ(first_difference(run_inference(engine(name), plain, d),
                                   run_inference(engine(name), masked, d)),
                  "")
            << masked.text << " on " << name;
      }
      EXPECT_NE(first_difference(run_training(conformance::cpu(), plain, d),
                                 run_training(conformance::cpu(), masked, d)),
                "")
          << masked.text;
    }
  }
}

// What keeps nothing, and what drops nothing, is not there.
TEST(StepMasks, OfTheLeastRateChangeNextToNothing) {
  for (const std::string text : kNetworks) {
    const bool lstm = text.starts_with("lstm");
    // No word of 32 bits is below it.
    const std::string least =
        lstm ? " zone=1e-12 zone_cell=1e-12 drop_state=1e-12" : " zone=1e-12 drop_state=1e-12";
    const Case plain = parse_case(text, "plain"), zoned = parse_case(text + least, "zoned");
    const conformance::Data d = make_data(plain);
    const conformance::Result a = run_training(conformance::cpu(), plain, d);
    const conformance::Result b = run_training(conformance::cpu(), zoned, d);
    for (std::size_t n = 0; n < a.parts.size(); ++n) {
      for (std::int64_t i = 0; i < a.parts[n].second.size(); ++i) {
        const double x = element(a.parts[n].second.view(), i);
        const double y = element(b.parts[n].second.view(), i);
        // Sums of gradients are taken in another order.
        ASSERT_NEAR(x, y, text.ends_with("f16") ? 1e-2 : 1e-5) << text << " " << a.parts[n].first;
      }
    }
  }
}

}  // namespace
}  // namespace openrnn::cpu
