// Which networks have second derivatives.
#include "engine/tangent.h"

#include <gtest/gtest.h>

#include "openrnn/spec_fields.h"

namespace openrnn::testing {
namespace {

// Values of a field that are not its default.
std::vector<FieldValue> others(const RnnField& field) {
  std::vector<FieldValue> values;
  switch (field.type) {
    case FieldType::kBool:
      return {!std::get<bool>(field.default_value())};
    case FieldType::kInteger:
      return {std::int64_t{5}};
    case FieldType::kNumber:
      return {0.25};
    case FieldType::kDType:
      return {"float64"};
    case FieldType::kPair:
      return {std::array{-0.5, 1.5}};
    case FieldType::kActivation:
      return {"softplus", "sigmoid", "elu(0.5)"};
    case FieldType::kWord:
      for (const std::string_view word : field.choices) values.emplace_back(std::string(word));
  }
  return values;
}

TEST(Tangents, KnowEveryOption) {
  for (const RnnField& field : rnn_fields()) {
    for (const FieldValue& value : others(field)) {
      RnnSpec spec;
      field.put(spec, value);
      EXPECT_TRUE(tangents_know(spec)) << field.name << ' ' << to_string(value);
    }
  }
}

// A newer one would be left out of the sum: no second derivative rather than a wrong one.
TEST(Tangents, KnowNoNewerFunctionOrCell) {
  const CellActivation newest{CellActivationKind::kSoftplus};
  const CellActivation newer{
      static_cast<CellActivationKind>(static_cast<int>(CellActivationKind::kSoftplus) + 1)};
  for (std::optional<CellActivation> RnnSpec::*const place :
       {&RnnSpec::activation, &RnnSpec::recurrent_activation, &RnnSpec::output_activation}) {
    RnnSpec spec;
    spec.*place = newest;
    EXPECT_TRUE(tangents_know(spec));
    spec.*place = newer;
    EXPECT_FALSE(tangents_know(spec));
  }
  EXPECT_FALSE(tangents_know({.mode = static_cast<RnnMode>(100)}));
}

}  // namespace
}  // namespace openrnn::testing
