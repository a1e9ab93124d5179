// What networks are made into for files that hold other biases, and values that are kept as text.
#include "mapping/support/biases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "mapping/networks.h"
#include "mapping/support/finite.h"
#include "mapping/support/values.h"
#include "openrnn/params.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using mapping::with_biases;
using mapping::without_forget_bias;

constexpr DType kFloats[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};

double rounded(double value, DType dtype) {
  const Array one = Array::of<double>({1}, std::span<const double>(&value, 1));
  return element(cast(one.view(), dtype).view(), 0);
}

MappedNetwork drawn(RnnSpec spec) {
  spec.num_layers = 2;
  spec.num_units = 3;
  spec.input_size = 2;
  spec.direction = Direction::kBidirectional;
  MappedNetwork network = network_of(spec, "n");
  network.slots.emplace("m", values_of(spec.dtype, network.params.shape(), 7));
  return network;
}

// The value of one bias; 0 where the network has none.
double bias_of(const MappedNetwork& network, const Array& values, const ParamRegion& like,
               ParamRole role, std::int64_t row) {
  const ParamsLayout layout(network.spec);
  for (const ParamRegion& region : layout.biases()) {
    if (region.role != role || region.layer != like.layer || region.gate != like.gate) continue;
    if (region.direction == like.direction) return element(values.view(), region.offset + row);
  }
  return 0.0;
}

constexpr ParamRole kIn = ParamRole::kInputBias, kRecurrent = ParamRole::kRecurrentBias;

template <class Visit>
void for_each_bias(const RnnSpec& spec, const Visit& visit) {
  const ParamsLayout layout(spec);
  for (const ParamRegion& region : layout.biases()) {
    if (region.role != kIn) continue;
    for (std::int64_t row = 0; row < region.rows; ++row) visit(region, row);
  }
}

TEST(Biases, TwoBecomeTheirSumAndOneBecomesTwo) {
  for (const DType dtype : kFloats) {
    for (const RnnSpec& spec : {RnnSpec{.mode = RnnMode::kLstm, .dtype = dtype},
                                {.mode = RnnMode::kRnnRelu, .dtype = dtype},
                                {.mode = RnnMode::kGru, .dtype = dtype, .reset_after = false}}) {
      const MappedNetwork two = drawn(spec), one = with_biases(two, 1), again = with_biases(one, 2);
      EXPECT_EQ(one.spec.biases_per_gate(), 1);
      EXPECT_EQ(again.spec, two.spec);
      int count = 0;
      for_each_bias(two.spec, [&](const ParamRegion& at, std::int64_t row) {
        const double first = bias_of(two, two.params, at, kIn, row),
                     second = bias_of(two, two.params, at, kRecurrent, row);
        const double sum = rounded(first + second, dtype);
        EXPECT_EQ(bias_of(one, one.params, at, kIn, row), sum) << at.name;
        EXPECT_EQ(bias_of(again, again.params, at, kIn, row), sum) << at.name;
        EXPECT_EQ(bias_of(again, again.params, at, kRecurrent, row), 0.0) << at.name;
        const double slot = bias_of(two, two.slots.at("m"), at, kIn, row);
        EXPECT_EQ(bias_of(one, one.slots.at("m"), at, kIn, row), slot) << at.name;
        EXPECT_EQ(bias_of(again, again.slots.at("m"), at, kIn, row), slot) << at.name;
        EXPECT_EQ(bias_of(again, again.slots.at("m"), at, kRecurrent, row), slot) << at.name;
        ++count;
      });
      EXPECT_GT(count, 0);
    }
  }
}

// The candidate's recurrent bias of a GRU lies inside the product with the reset gate, unless the
// reset is before it.
TEST(Biases, OneBiasIsNoCandidatesRecurrentOne) {
  const MappedNetwork after = drawn({.mode = RnnMode::kGru});
  const std::string error = error_of<UnsupportedError>([&] { with_biases(after, 1); });
  EXPECT_TRUE(error.ends_with(" that is not 0, which one bias a gate cannot hold")) << error;
  EXPECT_NO_THROW(with_biases(drawn({.mode = RnnMode::kGru, .reset_after = false}), 1));
}

// Where it is 0 the others join those of the input, whatever their values.
TEST(Biases, OneBiasOfAGruWithoutACandidatesRecurrentOne) {
  MappedNetwork network = drawn({.mode = RnnMode::kGru});
  const ParamsLayout layout(network.spec);
  std::vector<const ParamRegion*> candidates;
  for (const ParamRegion& region : layout.biases()) {
    const Gate gate = gates_of(network.spec.mode)[static_cast<std::size_t>(region.gate)];
    if (region.role != kRecurrent || gate != Gate::kN) continue;
    candidates.push_back(&region);
    for (std::int64_t i = 0; i < region.rows; ++i) {
      network.params.as<float>()[static_cast<std::size_t>(region.offset + i)] = 0.0F;
    }
  }
  ASSERT_EQ(candidates.size(), 4U);
  const MappedNetwork one = with_biases(network, 1);
  EXPECT_EQ(one.spec.biases_per_gate(), 1);
  EXPECT_TRUE(one.spec.reset_after);
  for_each_bias(network.spec, [&](const ParamRegion& at, std::int64_t row) {
    const double sum = bias_of(network, network.params, at, kIn, row) +
                       bias_of(network, network.params, at, kRecurrent, row);
    EXPECT_EQ(bias_of(one, one.params, at, kIn, row), rounded(sum, DType::kFloat32)) << at.name;
  });
  for (const ParamRegion* region : candidates) {
    MappedNetwork other = network;
    other.params.as<float>()[static_cast<std::size_t>(region->offset + region->rows - 1)] = 0.5F;
    EXPECT_EQ(error_of<UnsupportedError>([&] { with_biases(other, 1); }),
              "[save_networks] the network 'n' has " + region->name +
                  " that is not 0, which one bias a gate cannot hold");
  }
}

// Peepholes and gains are no biases: they stay where there are none.
TEST(Biases, WithoutThemOtherVectorsStay) {
  MappedNetwork network = drawn({.mode = RnnMode::kLstm, .use_peepholes = true});
  EXPECT_EQ(error_of<UnsupportedError>([&] { with_biases(network, 0); }),
            "[save_networks] the network 'n' has biases that are not 0, expected none");
  const ParamsLayout layout(network.spec);
  for (const ParamRegion& region : layout.biases()) {
    if (!region.is_bias()) continue;
    for (std::int64_t i = 0; i < region.rows; ++i) {
      network.params.as<float>()[static_cast<std::size_t>(region.offset + i)] = 0.0F;
    }
  }
  const MappedNetwork none = with_biases(network, 0);
  EXPECT_EQ(none.spec.biases_per_gate(), 0);
  int peepholes = 0;
  const ParamsLayout of_none(none.spec);
  for (const ParamRegion& region : of_none.biases()) {
    if (region.role != ParamRole::kPeephole) continue;
    for (std::int64_t i = 0; i < region.rows; ++i, ++peepholes) {
      EXPECT_EQ(element(none.params.view(), region.offset + i),
                bias_of(network, network.params, region, ParamRole::kPeephole, i));
    }
  }
  EXPECT_EQ(peepholes, 4 * 3 * 3);
}

TEST(Biases, AForgetBiasJoinsThatOfEachForgetGate) {
  for (const DType dtype : kFloats) {
    for (const bool use_bias : {true, false}) {
      const MappedNetwork given = drawn(
          {.mode = RnnMode::kLstm, .dtype = dtype, .forget_bias = 0.75, .use_bias = use_bias});
      const MappedNetwork found = without_forget_bias(given);
      EXPECT_EQ(found.spec.forget_bias, 0.0);
      EXPECT_EQ(found.spec.biases_per_gate(), use_bias ? 2 : 1);
      for_each_bias(found.spec, [&](const ParamRegion& at, std::int64_t row) {
        const double before = bias_of(given, given.params, at, kIn, row);
        EXPECT_EQ(bias_of(found, found.params, at, kIn, row),
                  rounded(before + (at.gate == 1 ? 0.75 : 0.0), dtype))
            << at.name << " " << dtype_name(dtype);
        EXPECT_EQ(bias_of(found, found.params, at, kRecurrent, row),
                  bias_of(given, given.params, at, kRecurrent, row));
      });
    }
  }
}

// Each kind of value as text and back, and the last one of a name.
TEST(TextValues, AreWhatTheyWere) {
  using Reals = std::vector<double>;
  const std::vector<NamedValue> values{{"none", {}},
                                       {"flag", true},
                                       {"whole", std::int64_t{INT64_MIN}},
                                       {"most", std::int64_t{INT64_MAX}},
                                       {"real", 0.1},
                                       {"inf", -HUGE_VAL},
                                       {"word", std::string("true")},
                                       {"reals", Reals{0.5, HUGE_VAL, -HUGE_VAL}},
                                       {"noreals", Reals{}},
                                       {"wholes", std::vector<std::int64_t>{1, -2}},
                                       {"words", std::vector<std::string>{"a", "1"}},
                                       {"nowords", std::vector<std::string>{}}};
  std::vector<NamedValue> texts;
  for (const auto& [name, text] : mapping::text_values(values)) texts.push_back({name, text});
  const std::vector<NamedValue> found = mapping::typed_values(texts);
  ASSERT_EQ(found.size(), values.size());
  for (const NamedValue& value : values) {
    const auto at = std::ranges::find(found, value.name, &NamedValue::name);
    ASSERT_NE(at, found.end()) << value.name;
    EXPECT_EQ(at->value, value.value) << value.name;
  }
}

TEST(TextValues, TheLastOfANameCounts) {
  const std::map<std::string, std::string> texts = mapping::text_values(
      {{"a", 1.5}, {"b", std::string("x")}, {"a", std::string("2")}, {"b", true}});
  EXPECT_EQ(texts.at("a"), "2");
  EXPECT_EQ(texts.at("b"), "true");
  EXPECT_EQ(texts.at(std::string(mapping::kJsonValues)), R"(["b"])");
}

// A whole number that no int64 holds is a real one.
TEST(TextValues, NumbersBeyondAllWholeOnesAreReal) {
  const auto value_of = [](const std::string& text) {
    return mapping::typed_values({{"n", text}, {std::string(mapping::kJsonValues), R"(["n"])"}})
        .at(0)
        .value;
  };
  EXPECT_EQ(value_of("9223372036854775807"), PlainValue(std::int64_t{INT64_MAX}));
  EXPECT_EQ(value_of("9223372036854775808"), PlainValue(9223372036854775808.0));
  EXPECT_EQ(value_of("[1, 18446744073709551615]"),
            PlainValue(std::vector<double>{1.0, 18446744073709551615.0}));
}

// Numbers that are none, alone and in lists.
TEST(TextValues, WhatIsNoNumberStaysSo) {
  const std::map<std::string, std::string> texts = mapping::text_values(
      {{"one", std::nan("")}, {"many", std::vector<double>{1.5, std::nan("")}}});
  std::vector<NamedValue> given;
  for (const auto& [name, text] : texts) given.push_back({name, text});
  const std::vector<NamedValue> found = mapping::typed_values(given);
  ASSERT_EQ(found.size(), 2U);
  const auto* const many = mapping::find_value<std::vector<double>>(found, "many");
  const auto* const one = mapping::find_value<double>(found, "one");
  ASSERT_TRUE(many && one);
  EXPECT_TRUE(std::isnan(*one) && std::isnan((*many)[1]));
  EXPECT_EQ((*many)[0], 1.5);
}

// What is listed as JSON and is none of a value stays a text, and what is not listed is one.
TEST(TextValues, TextsThatAreNoValues) {
  const auto value_of = [](const std::string& text, const std::string& list = R"(["n", 3])") {
    const std::vector<NamedValue> found =
        mapping::typed_values({{"n", text}, {std::string(mapping::kJsonValues), list}});
    EXPECT_EQ(found.size(), 1U);
    return found.at(0).value;
  };
  EXPECT_EQ(value_of("7"), PlainValue(std::int64_t{7}));
  EXPECT_EQ(value_of(R"({"reals": [1, "inf"]})"), PlainValue(std::vector<double>{1.0, HUGE_VAL}));
  for (const std::string text :
       {"{bad", R"([1, "x"])", R"([true])", R"([[1]])", R"({"reals": ["x"]})", R"({"reals": "x"})",
        R"({"reals": true})", R"({"reals": [true]})", R"({"other": 1})", R"("x")"}) {
    EXPECT_EQ(value_of(text), PlainValue(text)) << text;
  }
  for (const std::string list : {"{bad", "3", R"({"n": 1})", R"(["m"])", "[]"}) {
    EXPECT_EQ(value_of("7", list), PlainValue(std::string("7"))) << list;
  }
}

// Everywhere in a network, and on both sides of a block.
TEST(NonFinite, IsCountedWhereverItIs) {
  for (const DType dtype : kFloats) {
    MappedNetwork network = network_of({.num_units = 30, .input_size = 40, .dtype = dtype}, "n");
    ASSERT_GT(network.params.size_bytes(), std::size_t{1} << 14);
    const std::int64_t block = (1 << 14) / static_cast<std::int64_t>(dtype_size(dtype));
    const auto put = [&](Array& array, std::int64_t at, double value) {
      Array wide = cast(array.view(), DType::kFloat64);
      wide.as<double>()[static_cast<std::size_t>(at)] = value;
      array = cast(wide.view(), dtype);
    };
    EXPECT_TRUE(mapping::non_finite_notes(network).empty());
    put(network.params, 0, std::nan(""));
    put(network.params, block - 1, -HUGE_VAL);
    put(network.params, block, HUGE_VAL);
    put(network.params, network.params.size() - 1, -std::nan(""));
    network.initial_h = values_of(dtype, {1, 30}, 1);
    network.initial_c = values_of(dtype, {1, 30}, 2);
    network.slots.emplace("m", values_of(dtype, network.params.shape(), 3));
    put(*network.initial_h, 3, HUGE_VAL);
    put(*network.initial_c, 4, std::nan(""));
    put(network.slots.at("m"), block - 1, -HUGE_VAL);
    const std::vector<std::string> notes = mapping::non_finite_notes(network);
    ASSERT_EQ(notes.size(), 4U) << dtype_name(dtype);
    EXPECT_NE(notes[0].find("2 NaN and 2 infinite of "), std::string::npos) << notes[0];
    EXPECT_TRUE(notes[1].ends_with("0 NaN and 1 infinite of 30 values in initial_h")) << notes[1];
    EXPECT_TRUE(notes[2].ends_with("1 NaN and 0 infinite of 30 values in initial_c")) << notes[2];
    EXPECT_NE(notes[3].find("0 NaN and 1 infinite of "), std::string::npos) << notes[3];
  }
}

}  // namespace
}  // namespace openrnn
