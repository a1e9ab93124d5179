// Whole models whose recurrent layer begins with a state and has rows of which no step counts.
#include <gtest/gtest.h>

#include "layers/graph/gru_model.h"

namespace openrnn {
namespace {

constexpr std::int64_t kUnits = 3, kWidth = 2;

// Vectors of four ids, of which 0 is a step that does not count.
MappedLayer words_layer(const Array& table) {
  return {.name = "words",
          .kind = "embedding",
          .inputs = {{"ids", 0}},
          .options = {{"vocabulary", std::int64_t{4}}, {"dim", kWidth}, {"mask_zero", true}},
          .weights = {{"embeddings", table}}};
}

// The last output of a GRU that begins with a state; 0 is a step that does not count.
std::shared_ptr<layers::LayerGraph> gru_of_ids(bool reverse) {
  MappedModel model = gru_model(kUnits, kWidth);
  Array table(DType::kFloat32, {4, kWidth});
  float next = -0.7F;
  for (float& value : table.as<float>()) value = next += 0.2F;
  model.layers = {ids_layer(),
                  words_layer(table),
                  {.name = "gru",
                   .kind = "recurrent",
                   .inputs = {{"words", 0}},
                   .options = {{"network", std::string("gru")},
                               {"return_sequences", false},
                               {"reverse", reverse},
                               {"initial_h", std::vector<double>{0.5, -0.25, 0.75}}}}};
  model.outputs = {{"gru", 0}};
  return layers::LayerGraph::of(model);
}

std::vector<double> run(layers::LayerGraph& graph, std::vector<std::int32_t> ids) {
  const auto steps = static_cast<std::int64_t>(ids.size());
  const Array y = graph.predict({Tensor(Array::of<std::int32_t>({1, steps}, ids).view())})[0];
  std::vector<double> values;
  for (std::int64_t i = 0; i < y.size(); ++i) values.push_back(element(y.view(), i));
  return values;
}

// As Keras has it: the output is 0 until a step counts, whatever the state is.
TEST(LayerGraphMasks, ARowOfWhichNoStepCountsPutsOutZeros) {
  for (const bool reverse : {false, true}) {
    const auto graph = gru_of_ids(reverse);
    const std::vector<double> zeros(kUnits, 0.0), one = run(*graph, {2});
    EXPECT_NE(one, zeros);
    EXPECT_EQ(run(*graph, {0, 0, 0}), zeros);
    // One step counts, wherever it is.
    for (std::size_t at = 0; at < 3; ++at) {
      std::vector<std::int32_t> ids(3, 0);
      ids[at] = 2;
      EXPECT_EQ(run(*graph, ids), one) << at;
    }
    EXPECT_EQ(run(*graph, {3, 0, 1}), run(*graph, {3, 1}));
    EXPECT_NE(run(*graph, {3, 1}), run(*graph, {1, 3}));
    EXPECT_EQ(run(*gru_of_ids(!reverse), {3, 1}), run(*graph, {1, 3}));
  }
}

// 0.1 as the option says it is no float32, the steps' values are.
TEST(LayerGraphMasks, AMaskValueIsOneOfTheDtype) {
  MappedModel model;
  model.layers = {
      {.name = "x", .kind = "input", .options = {{"shape", std::vector<std::int64_t>{-1, -1, 1}}}},
      {.name = "mask", .kind = "masking", .inputs = {{"x", 0}}, .options = {{"mask_value", 0.1}}}};
  model.outputs = {{"mask", 0}};
  const auto graph = layers::LayerGraph::of(model);
  const Tensor x(Array::of<float>({1, 3, 1}, {{0.1F, 0.2F, 0.1F}}).view());
  const Array y = graph->predict({x})[0];
  EXPECT_EQ(y.as<float>()[0], 0.0F);
  EXPECT_EQ(y.as<float>()[1], 0.2F);
  EXPECT_EQ(y.as<float>()[2], 0.0F);
}

/// What a recurrent layer over ids puts out, with its own network.
std::vector<double> of_network(const RnnSpec& spec, const std::vector<std::int32_t>& ids,
                               std::map<std::string, PlainValue> options) {
  MappedModel model;
  model.networks.push_back(
      {.name = "own", .spec = spec, .params = initialize_params(ParamsLayout(spec), 7)});
  options["network"] = std::string("own");
  model.layers = {ids_layer(),
                  words_layer(Array::of<float>(
                      {4, kWidth}, {{0.5F, -0.5F, 0.3F, 0.8F, -0.6F, 0.1F, 0.9F, 0.2F}})),
                  {.name = "rnn",
                   .kind = "recurrent",
                   .inputs = {{"words", 0}},
                   .options = std::move(options)}};
  model.outputs = {{"rnn", 0}};
  return run(*layers::LayerGraph::of(model), ids);
}

// With zero_output_for_mask the last output is that of the last step: 0 where that one does not
// count; of the direction that goes back, of the first step.
TEST(LayerGraphMasks, TheLastOutputMayBeThatOfAStepThatDoesNotCount) {
  const RnnSpec spec{.mode = RnnMode::kGru,
                     .num_units = kUnits,
                     .input_size = kWidth,
                     .direction = Direction::kBidirectional};
  const auto last = [&](bool sequences, const std::vector<std::int32_t>& ids) {
    return of_network(spec, ids, {{"return_sequences", sequences}, {"zero_output_for_mask", true}});
  };
  for (const std::vector<std::int32_t>& ids :
       {std::vector<std::int32_t>{1, 2, 3}, {0, 2, 3}, {1, 2, 0}, {0, 3, 0}}) {
    const std::vector<double> all = last(true, ids), found = last(false, ids);
    ASSERT_EQ(found.size(), 2U * kUnits);
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      EXPECT_EQ(found[unit], all[2 * (2 * kUnits) + unit]);
      EXPECT_EQ(found[kUnits + unit], all[kUnits + unit]);
      EXPECT_EQ(found[unit] == 0.0, ids[2] == 0);
      EXPECT_EQ(found[kUnits + unit] == 0.0, ids[0] == 0);
    }
  }
}

// Of every cell, with a projection too, whose output is narrower than the units.
TEST(LayerGraphMasks, TheLastOutputOfEveryNetworkIsOneOfItsOutputs) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh}) {
    for (const std::int64_t projected : {0, 2}) {
      for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
        const RnnSpec spec{.mode = mode,
                           .num_units = 5,
                           .input_size = kWidth,
                           .direction = direction,
                           .num_proj = projected};
        const std::size_t width = projected ? 2 : 5, all = width * (spec.num_dirs() == 2 ? 2 : 1);
        for (const std::vector<std::int32_t>& ids :
             {std::vector<std::int32_t>{1, 2, 3}, {0, 2, 3}, {1, 2, 0}, {0, 3, 0}}) {
          for (const bool zeros : {true, false}) {
            SCOPED_TRACE(describe(spec) + (zeros ? " zeros" : ""));
            const auto out = [&](bool sequences) {
              return of_network(spec, ids,
                                {{"return_sequences", sequences}, {"zero_output_for_mask", zeros}});
            };
            const std::vector<double> steps = out(true), last = out(false);
            ASSERT_EQ(last.size(), all);
            // Without zeros a step that does not count repeats the one before it.
            for (std::size_t i = 0; i < all; ++i) {
              EXPECT_EQ(last[i], steps[(i < width ? 2 : 0) * all + i]) << i;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace openrnn
