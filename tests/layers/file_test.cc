// Files as layers, and back.
#include <gtest/gtest.h>
#include <openrnn/layers_file.h>

#include "formats/temp_folder.h"
#include "mapping/networks.h"

namespace openrnn {
namespace {

using formats::TempFolder;

TEST(LayerFile, ALayerRunsAndTrainsWithTheWeightsOfTheFile) {
  const TempFolder folder;
  MappedModel model;
  model.networks = {
      network_of({.num_layers = 2,
                  .num_units = 5,
                  .input_size = 3,
                  .direction = Direction::kBidirectional},
                 "encoder"),
      network_of({.mode = RnnMode::kGru, .num_units = 7, .input_size = 2, .reset_after = false},
                 "decoder", 2)};
  model.networks[1].initial_h = values_of(DType::kFloat32, {1, 7}, 3);
  save_networks(folder / "m.openrnn", model, ModelFormat::kOpenrnn);
  std::vector<LoadedLayer> loaded = load(folder / "m.openrnn");
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_EQ(loaded[0].name, "encoder");
  EXPECT_TRUE(loaded[0].initial_state.empty());
  ASSERT_EQ(loaded[1].initial_state.size(), 1U);
  for (std::size_t i = 0; i < 2; ++i) {
    const MappedNetwork& network = model.networks[i];
    EXPECT_TRUE(same_bytes(loaded[i].layer->kernel().to_host(), network.params));
    const Array x = values_of(DType::kFloat32, {5, 3, network.spec.input_size}, 99);
    layers::RnnCallOptions call;
    call.training = false;
    const Array y = (*loaded[i].layer)(Tensor(x.view()), {}, call).output.to_host();
    const std::vector<double> expected = output_of(network);
    for (std::int64_t at = 0; at < y.size(); ++at) {
      EXPECT_EQ(element(y.view(), at), expected[static_cast<std::size_t>(at)]);
    }
  }
  // What is trained is what is saved.
  const Array changed = values_of(DType::kFloat32, loaded[0].layer->kernel().shape(), 11);
  loaded[0].layer->kernel().assign(changed.view());
  save(folder / "n.openrnn", loaded, ModelFormat::kOpenrnn);
  const MappedModel again = load_networks(folder / "n.openrnn");
  EXPECT_TRUE(same_bytes(again.networks[0].params, changed));
  EXPECT_EQ(again.networks[1].spec, model.networks[1].spec);
  EXPECT_TRUE(same_bytes(*again.networks[1].initial_h, *model.networks[1].initial_h));
}

TEST(LayerFile, BothStatesOfANetworkAreSaved) {
  const TempFolder folder;
  const RnnSpec specs[] = {{.num_units = 3, .input_size = 2},
                           {.num_layers = 2, .num_units = 3, .input_size = 2, .num_proj = 2},
                           {.mode = RnnMode::kGru, .num_units = 3, .input_size = 2, .num_proj = 2},
                           {.mode = RnnMode::kGru, .num_units = 3, .input_size = 2}};
  for (const RnnSpec& spec : specs) {
    MappedModel model;
    model.networks = {network_of(spec)};
    model.networks[0].initial_h =
        values_of(DType::kFloat32, {spec.num_layers, spec.hidden_size()}, 3);
    if (spec.has_cell()) {
      model.networks[0].initial_c =
          values_of(DType::kFloat32, {spec.num_layers, spec.num_units}, 4);
    }
    save_networks(folder / "m", model, ModelFormat::kOpenrnn);
    const std::vector<LoadedLayer> loaded = load(folder / "m");
    ASSERT_EQ(loaded.at(0).initial_state.size(), spec.has_cell() ? 2U : 1U) << describe(spec);
    save(folder / "n", loaded, ModelFormat::kOpenrnn);
    const MappedNetwork again = load_networks(folder / "n").networks.at(0);
    EXPECT_TRUE(same_bytes(*again.initial_h, *model.networks[0].initial_h));
    ASSERT_EQ(again.initial_c.has_value(), spec.has_cell()) << describe(spec);
    if (again.initial_c) EXPECT_TRUE(same_bytes(*again.initial_c, *model.networks[0].initial_c));
  }
}

TEST(LayerFile, EveryModeAndActivation) {
  const TempFolder folder;
  const RnnSpec specs[] = {
      {.mode = RnnMode::kRnnTanh, .num_units = 3, .input_size = 1},
      {.mode = RnnMode::kRnnRelu, .num_units = 3, .input_size = 1},
      {.mode = RnnMode::kRnnTanh,
       .num_units = 3,
       .input_size = 1,
       .activation = parse_cell_activation("softsign")},
      {.num_units = 3, .input_size = 1, .num_proj = 2, .use_peepholes = true},
  };
  for (const RnnSpec& spec : specs) {
    MappedModel model;
    model.networks = {network_of(spec)};
    save_networks(folder / "m", model, ModelFormat::kOpenrnn);
    const std::vector<LoadedLayer> loaded = load(folder / "m");
    EXPECT_EQ(loaded.at(0).layer->spec(), spec) << describe(spec);
  }
}

TEST(LayerFile, ALayerThatIsNotBuiltIsRefused) {
  const TempFolder folder;
  const LoadedLayer one{"a", layers::make_cudnn_rnn({.network = {.num_units = 3}})};
  EXPECT_MESSAGE(StateError, save(folder / "m", {&one, 1}, ModelFormat::kOpenrnn),
                 "the layer of 'a' is not built");
  const LoadedLayer none{"b", nullptr};
  EXPECT_MESSAGE(StateError, save(folder / "m", {&none, 1}, ModelFormat::kOpenrnn),
                 "[save] the layer of 'b' is not built, expected one with weights");
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace openrnn
