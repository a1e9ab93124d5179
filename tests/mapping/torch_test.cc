// Networks of PyTorch's files: names, shapes and options, there and back.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "support/files/source_file.h"

namespace openrnn {
namespace {

using formats::TempFolder;

constexpr RnnMode kModes[] = {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu};
constexpr Direction kDirections[] = {Direction::kUnidirectional, Direction::kBidirectional};
constexpr DType kDtypes[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};

MappedModel model_of(std::vector<MappedNetwork> networks) {
  MappedModel model;
  model.networks = std::move(networks);
  return model;
}

MappingHints hints_of(RnnMode mode) {
  MappingHints hints;
  if (mode == RnnMode::kRnnTanh || mode == RnnMode::kRnnRelu) hints.mode = mode;
  return hints;
}

MappedNetwork saved_and_loaded(const MappedNetwork& network, ModelFormat format) {
  const TempFolder folder;
  save_networks(folder / "m", model_of({network}), format);
  MappedModel model = load_networks(folder / "m", hints_of(network.spec.mode));
  EXPECT_TRUE(model.not_understood.empty());
  EXPECT_EQ(model.networks.size(), 1U);
  return std::move(model.networks.at(0));
}

TEST(TorchNetworks, EveryNetworkThereAndBack) {
  for (const RnnMode mode : kModes) {
    for (const Direction direction : kDirections) {
      for (const std::int64_t layers : {1, 3}) {
        for (const DType dtype : kDtypes) {
          const RnnSpec spec{.mode = mode,
                             .num_layers = layers,
                             .num_units = 7,
                             .input_size = 3,
                             .direction = direction,
                             .dtype = dtype};
          const MappedNetwork network = network_of(spec, "encoder.rnn");
          for (const ModelFormat format : {ModelFormat::kTorch, ModelFormat::kSafetensors}) {
            const MappedNetwork found = saved_and_loaded(network, format);
            EXPECT_EQ(found.name, "encoder.rnn");
            EXPECT_EQ(found.spec, spec) << describe(found.spec);
            EXPECT_TRUE(same_bytes(found.params, network.params)) << describe(spec);
            EXPECT_EQ(found.tensors.size(), static_cast<std::size_t>(4 * spec.num_pseudo_layers()));
          }
        }
      }
    }
  }
}

TEST(TorchNetworks, ProjectionAndNoBiases) {
  for (const Direction direction : kDirections) {
    for (const bool use_bias : {true, false}) {
      const RnnSpec spec{.num_layers = 2,
                         .num_units = 15,
                         .input_size = 1,
                         .direction = direction,
                         .num_proj = 4,
                         .use_bias = use_bias};
      const MappedNetwork network = network_of(spec);
      const MappedNetwork found = saved_and_loaded(network, ModelFormat::kTorch);
      EXPECT_EQ(found.spec, spec);
      EXPECT_TRUE(same_bytes(found.params, network.params));
    }
  }
}

// PyTorch's parameters one behind the other, weights before biases, are the opaque buffer.
TEST(TorchNetworks, TheOpaqueBufferIsPyTorchsParametersInOrder) {
  for (const RnnMode mode : kModes) {
    const RnnSpec spec{.mode = mode,
                       .num_layers = 2,
                       .num_units = 3,
                       .input_size = 5,
                       .direction = Direction::kBidirectional,
                       .num_proj = mode == RnnMode::kLstm ? 2 : 0};
    std::vector<TorchParameter> parameters = torch_parameters(spec);
    std::stable_sort(parameters.begin(), parameters.end(),
                     [](const auto& a, const auto& b) { return a.offset < b.offset; });
    std::int64_t offset = 0;
    bool biases = false;
    std::string last;
    for (const TorchParameter& parameter : parameters) {
      EXPECT_EQ(parameter.offset, offset) << parameter.name;
      offset += shape_size(parameter.shape);
      const bool is_bias = parameter.name.starts_with("bias");
      EXPECT_TRUE(is_bias || !biases) << parameter.name << " after a bias";
      biases = biases || is_bias;
    }
    EXPECT_EQ(offset, params_size(spec));
  }
  const std::vector<TorchParameter> order =
      torch_parameters(RnnSpec{.num_units = 3, .input_size = 2, .num_proj = 1});
  std::vector<std::string> names;
  for (const TorchParameter& parameter : order) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
                                             "bias_hh_l0", "weight_hr_l0"}));
}

TEST(TorchNetworks, CanonicalTensorsThereAndBack) {
  const RnnSpec spec{.mode = RnnMode::kGru,
                     .num_layers = 2,
                     .num_units = 5,
                     .input_size = 3,
                     .direction = Direction::kBidirectional,
                     .dtype = DType::kFloat64};
  const MappedNetwork network = network_of(spec);
  const CanonicalParams canonical = params_to_canonical(ParamsLayout(spec), network.params.view());
  const auto views = [](const std::vector<Array>& arrays) {
    std::vector<ConstArrayView> out;
    for (const Array& array : arrays) out.push_back(array.view());
    return out;
  };
  const std::vector<Array> torch =
      torch_from_canonical(spec, views(canonical.weights), views(canonical.biases));
  const std::vector<TorchParameter> parameters = torch_parameters(spec);
  ASSERT_EQ(torch.size(), parameters.size());
  // weight_ih_l0 is the matrices of r, z and n as rows.
  EXPECT_EQ(torch[0].shape(), (Shape{15, 3}));
  for (std::size_t gate = 0; gate < 3; ++gate) {
    for (std::size_t i = 0; i < 15; ++i) {
      EXPECT_EQ(torch[0].as<double>()[gate * 15 + i], canonical.weights[gate].as<double>()[i]);
    }
  }
  const CanonicalParams again = canonical_from_torch(spec, views(torch));
  for (std::size_t i = 0; i < again.weights.size(); ++i) {
    EXPECT_TRUE(same_bytes(again.weights[i], canonical.weights[i]));
  }
  for (std::size_t i = 0; i < again.biases.size(); ++i) {
    EXPECT_TRUE(same_bytes(again.biases[i], canonical.biases[i]));
  }
  std::vector<ConstArrayView> wrong = views(torch);
  wrong[1].shape = {15, 4};
  EXPECT_MESSAGE(ArgumentError, canonical_from_torch(spec, wrong),
                 "weight_hh_l0 is float64 [15, 4], expected float64 [15, 5]");
  wrong.pop_back();
  EXPECT_MESSAGE(ArgumentError, canonical_from_torch(spec, wrong), "15 tensors, expected 16");
}

TEST(TorchNetworks, ACellIsOneLayer) {
  const TempFolder folder;
  const MappedNetwork network =
      network_of({.mode = RnnMode::kGru, .num_units = 3, .input_size = 2});
  std::vector<NamedView> views;
  std::vector<Array> kept;
  for (const TorchParameter& parameter : torch_parameters(network.spec)) {
    const float* first = network.params.as<float>().data() + parameter.offset;
    views.push_back({"cells.0." + parameter.name.substr(0, parameter.name.size() - 3),
                     {first, DType::kFloat32, parameter.shape}});
  }
  write_torch_state_dict(folder / "m", views);
  const MappedModel model = load_networks(folder / "m");
  ASSERT_EQ(model.networks.size(), 1U);
  EXPECT_EQ(model.networks[0].name, "cells.0");
  EXPECT_EQ(model.networks[0].spec, network.spec);
  EXPECT_TRUE(same_bytes(model.networks[0].params, network.params));
}

TEST(TorchNetworks, ACellAndAModuleOfOnePrefixAreTwo) {
  const TempFolder folder;
  const MappedNetwork cell = network_of({.mode = RnnMode::kGru, .num_units = 3, .input_size = 2}),
                      module = network_of({.num_units = 4, .input_size = 1}, "", 2);
  std::vector<NamedView> views;
  for (const MappedNetwork* network : {&cell, &module}) {
    for (const TorchParameter& parameter : torch_parameters(network->spec)) {
      const float* first = network->params.as<float>().data() + parameter.offset;
      const std::size_t end = network == &cell ? 3 : 0;
      views.push_back({"rnn." + parameter.name.substr(0, parameter.name.size() - end),
                       {first, DType::kFloat32, parameter.shape}});
    }
  }
  write_torch_state_dict(folder / "m", views);
  const MappedModel model = load_networks(folder / "m");
  ASSERT_EQ(model.networks.size(), 2U);
  EXPECT_TRUE(model.notes.empty() && model.not_understood.empty());
  for (const MappedNetwork& found : model.networks) {
    const MappedNetwork& expected = found.spec.mode == RnnMode::kGru ? cell : module;
    EXPECT_EQ(found.spec, expected.spec);
    EXPECT_TRUE(same_bytes(found.params, expected.params));
  }
}

// Names that look like an optimizer's, and are of no optimizer.
TEST(TorchNetworks, OtherTensorsAreNoSlots) {
  const MappedNetwork network = network_of({.num_units = 3, .input_size = 2}, "rnn");
  std::vector<NamedView> views;
  for (const TorchParameter& parameter : torch_parameters(network.spec)) {
    const float* first = network.params.as<float>().data() + parameter.offset;
    views.push_back({"rnn." + parameter.name, {first, DType::kFloat32, parameter.shape}});
  }
  std::vector<std::string> names;
  for (const std::string name : {"mystate.0.exp_avg", "state.0x.exp_avg", "state.x.exp_avg",
                                 "state..exp_avg", "a.mystate.1.exp_avg"}) {
    views.push_back({name, views[0].values});
    names.push_back(name);
  }
  const TempFolder folder;
  write_torch_state_dict(folder / "m", views);
  const MappedModel model = load_networks(folder / "m");
  EXPECT_EQ(model.notes, std::vector<std::string>{});
  std::vector<std::string> left = model.not_understood;
  std::ranges::sort(left);
  std::ranges::sort(names);
  EXPECT_EQ(left, names);
  ASSERT_EQ(model.networks.size(), 1U);
  EXPECT_TRUE(model.networks[0].slots.empty());
}

TEST(TorchNetworks, SeveralNetworksAndOtherTensors) {
  const TempFolder folder;
  const MappedNetwork one = network_of({.num_units = 3, .input_size = 2}, "a.rnn", 1),
                      two = network_of({.mode = RnnMode::kGru, .num_units = 4, .input_size = 1},
                                       "b", 2);
  save_networks(folder / "m", model_of({one, two}), ModelFormat::kTorch);
  const ModelFile file(folder / "m");
  std::vector<Array> kept;
  std::vector<NamedView> views;
  for (const TensorInfo& info : file.tensors()) kept.push_back(file.read(info.name));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    views.push_back({file.tensors()[i].name, kept[i].view()});
  }
  const Array dense = values_of(DType::kFloat32, {2, 2}, 3);
  views.push_back({"dense.weight", dense.view()});
  views.push_back({"odd.weight_ih_l0", dense.view()});
  write_torch_state_dict(folder / "more", views);
  const MappedModel model = load_networks(folder / "more");
  EXPECT_EQ(model.kind, FileKind::kTorch);
  EXPECT_EQ(model.what, "a PyTorch file");
  ASSERT_EQ(model.networks.size(), 2U);
  EXPECT_EQ(model.networks[0].name, "a.rnn");
  EXPECT_TRUE(same_bytes(model.networks[0].params, one.params));
  EXPECT_EQ(model.networks[1].name, "b");
  EXPECT_TRUE(same_bytes(model.networks[1].params, two.params));
  EXPECT_EQ(model.not_understood, (std::vector<std::string>{"dense.weight", "odd.weight_ih_l0"}));
  ASSERT_EQ(model.notes.size(), 1U);
  EXPECT_EQ(model.notes[0],
            "no network was made from 'odd.weight_ih_l0' and the like: it has no weight_hh_l0");
}

TEST(TorchNetworks, TheModeOfAPlainNetworkIsAskedFor) {
  const TempFolder folder;
  const MappedNetwork network =
      network_of({.mode = RnnMode::kRnnRelu, .num_units = 3, .input_size = 2}, "rnn");
  save_networks(folder / "m", model_of({network}), ModelFormat::kTorch);
  EXPECT_MESSAGE(ArgumentError, load_networks(folder / "m"),
                 "expected the hint mode: rnn_tanh or rnn_relu");
  EXPECT_MESSAGE(ArgumentError, load_networks(folder / "m", {.mode = RnnMode::kLstm}),
                 "expected the hint mode");
  EXPECT_EQ(load_networks(folder / "m", {.mode = RnnMode::kRnnRelu}).networks[0].spec,
            network.spec);
}

// What the file says counts before the hint.
TEST(TorchNetworks, AFileMayNameTheModeOfAPlainNetwork) {
  for (const RnnMode mode : {RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    const RnnMode other = mode == RnnMode::kRnnTanh ? RnnMode::kRnnRelu : RnnMode::kRnnTanh;
    const bool is_tanh = mode == RnnMode::kRnnTanh;
    const TempFolder folder;
    MappedModel model =
        model_of({network_of({.mode = mode, .num_units = 3, .input_size = 2}, "rnn")});
    model.values = {{"rnn.mode", std::string(is_tanh ? "RNN_TANH" : "RNN_RELU")}};
    save_networks(folder / "m", model, ModelFormat::kSafetensors);
    EXPECT_EQ(load_networks(folder / "m").networks.at(0).spec.mode, mode);
    EXPECT_EQ(load_networks(folder / "m", {.mode = other}).networks.at(0).spec.mode, mode);
    model.values = {{"other.mode", std::string(is_tanh ? "RNN_RELU" : "RNN_TANH")},
                    {"rnn.mode", std::string("RNN_SWISH")}};
    save_networks(folder / "n", model, ModelFormat::kSafetensors);
    EXPECT_EQ(load_networks(folder / "n", {.mode = mode}).networks.at(0).spec.mode, mode);
    EXPECT_MESSAGE(ArgumentError, load_networks(folder / "n"), "expected the hint mode");
  }
}

TEST(TorchNetworks, ShapesThatDoNotAgreeMakeNoNetwork) {
  const Array matrix = values_of(DType::kFloat32, {12, 3}, 1),
              other = values_of(DType::kFloat32, {12, 2}, 2),
              bias = values_of(DType::kFloat32, {12}, 3), odd = values_of(DType::kFloat32, {11}, 3),
              wide = values_of(DType::kFloat64, {12}, 3),
              five = values_of(DType::kFloat32, {15, 3}, 4),
              uneven = values_of(DType::kFloat32, {13, 3}, 5),
              empty = values_of(DType::kFloat32, {12, 0}, 6);
  struct Case {
    std::vector<NamedView> views;
    std::string why;
  };
  const NamedView ih{"weight_ih_l0", other.view()}, hh{"weight_hh_l0", matrix.view()};
  const Case cases[] = {
      {{ih}, "it has no weight_hh_l0"},
      {{hh}, "it has no weight_ih_l0"},
      {{ih, hh, {"bias_ih_l0", bias.view()}}, "it has no bias_hh_l0"},
      {{ih, hh, {"bias_ih_l0", bias.view()}, {"bias_hh_l0", odd.view()}},
       "bias_hh_l0 is float32 [11], expected float32 [12]"},
      {{ih, hh, {"bias_ih_l0", bias.view()}, {"bias_hh_l0", wide.view()}},
       "bias_hh_l0 is float64 [12], expected float32 [12]"},
      {{ih, {"weight_hh_l0", five.view()}}, "expected 1, 3 or 4 gates of 3 rows"},
      {{ih, {"weight_hh_l0", uneven.view()}}, "expected 1, 3 or 4 gates of 3 rows"},
      {{ih, {"weight_hh_l0", bias.view()}}, "expected two sizes of at least 1"},
      {{ih, {"weight_hh_l0", empty.view()}}, "expected two sizes of at least 1"},
      {{ih, hh, {"weight_ih_l2", other.view()}}, "it has 3 tensors, expected the 2 of lstm"},
      {{ih, hh, {"weight_ih_l1", other.view()}}, "weight_ih_l1 is float32 [12, 2], expected"},
      {{ih, hh, {"weight_ih_l0_reverse", other.view()}}, "it has no weight_hh_l0_reverse"},
      {{ih, {"weight_hh_l0", other.view()}}, "expected 1, 3 or 4 gates of 2 rows"},
  };
  for (const Case& one : cases) {
    const TempFolder folder;
    write_torch_state_dict(folder / "m", one.views);
    const MappedModel model = load_networks(folder / "m");
    EXPECT_TRUE(model.networks.empty()) << one.why;
    EXPECT_EQ(model.not_understood.size(), one.views.size());
    ASSERT_EQ(model.notes.size(), 1U);
    EXPECT_TRUE(formats::contains(model.notes[0], one.why)) << model.notes[0];
  }
}

TEST(TorchNetworks, BiasesBecomeTwo) {
  RnnSpec spec{.num_layers = 2,
               .num_units = 5,
               .input_size = 3,
               .dtype = DType::kFloat64,
               .single_bias = true};
  for (const RnnMode mode : kModes) {
    spec.mode = mode;
    const MappedNetwork network = network_of(spec);
    const MappedNetwork found = saved_and_loaded(network, ModelFormat::kTorch);
    EXPECT_FALSE(found.spec.single_bias);
    EXPECT_EQ(output_of(found), output_of(network)) << to_string(mode);
  }
  spec.mode = RnnMode::kLstm;
  spec.forget_bias = 1.0;
  const MappedNetwork network = network_of(spec);
  const MappedNetwork found = saved_and_loaded(network, ModelFormat::kTorch);
  EXPECT_EQ(found.spec.forget_bias, 0.0);
  const std::vector<double> a = output_of(found), b = output_of(network);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-14);
  EXPECT_NE(output_of(network_of([&] {
              RnnSpec other = spec;
              other.forget_bias = 0.0;
              return other;
            }())),
            b);
}

TEST(TorchNetworks, WhatPyTorchCannotHoldIsRefusedByNameBeforeAnythingIsWritten) {
  struct Case {
    RnnSpec spec;
    std::string message;
  };
  const Case cases[] = {
      {{.mode = RnnMode::kGru, .num_units = 3, .input_size = 2, .reset_after = false},
       "the network 'gru' has reset_after false, which a state_dict of PyTorch cannot hold"},
      {{.num_units = 3, .input_size = 2, .cell_clip = {{-1.0, 2.0}}, .use_peepholes = true},
       "has cell_clip [-1, 2], use_peepholes true, which"},
      {{.num_units = 3, .input_size = 3, .input_mode = InputMode::kAutoSelect},
       "has input_mode skip_input, which"},
      {{.num_units = 3,
        .input_size = 2,
        .activation = make_cell_activation(CellActivationKind::kSoftsign)},
       "has activation softsign, which"},
      {{.mode = RnnMode::kGru, .num_units = 3, .input_size = 2, .num_proj = 2},
       "num_proj 2 for gru, which PyTorch cannot hold"},
  };
  for (const Case& one : cases) {
    const TempFolder folder;
    EXPECT_MESSAGE(
        UnsupportedError,
        save_networks(folder / "m", model_of({network_of(one.spec, "gru")}), ModelFormat::kTorch),
        one.message);
    EXPECT_TRUE(folder.names().empty());
  }
}

TEST(TorchNetworks, OptionsThatSayWhatTheDefaultSaysAreHeld) {
  RnnSpec spec{.mode = RnnMode::kRnnTanh,
               .num_units = 3,
               .input_size = 2,
               .input_mode = InputMode::kAutoSelect,
               .activation = make_cell_activation(CellActivationKind::kRelu)};
  MappedNetwork network = network_of(spec);
  const TempFolder folder;
  save_networks(folder / "m", model_of({network}), ModelFormat::kTorch);
  const MappedNetwork found =
      load_networks(folder / "m", {.mode = RnnMode::kRnnRelu}).networks.at(0);
  EXPECT_EQ(output_of(found), output_of(network));
}

// Two steps of Adam in PyTorch, and other tensors beside the model.
TEST(TorchNetworks, SlotsOfAnOptimizerBelongToTheParametersOfTheirNumbers) {
  for (const char* name : {"good_checkpoint", "good_old_checkpoint"}) {
    const std::string path = source_file(std::string("fuzz/corpus/torch_file/") + name);
    const MappedModel model = load_networks(path);
    ASSERT_EQ(model.networks.size(), 1U);
    const MappedNetwork& network = model.networks[0];
    EXPECT_EQ(network.name, "model");
    EXPECT_EQ(describe(network.spec), describe({.num_units = 2, .input_size = 3}));
    ASSERT_EQ(network.slots.size(), 2U);
    const ModelFile file(path);
    const std::vector<TorchParameter> parameters = torch_parameters(network.spec);
    for (const auto& [slot, values] : network.slots) {
      EXPECT_EQ(values.size(), network.params.size());
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Array part = file.read("optimizer.state." + std::to_string(i) + "." + slot);
        for (std::int64_t j = 0; j < part.size(); ++j) {
          EXPECT_EQ(element(values.view(), parameters[i].offset + j), element(part.view(), j));
        }
      }
    }
    EXPECT_TRUE(network.slots.contains("exp_avg") && network.slots.contains("exp_avg_sq"));
  }
}

// What the fuzzers of files found, and what was made by hand: an error, or networks that fit.
TEST(TorchNetworks, EveryFileOfTheCorporaIsReadOrRefused) {
  std::size_t read = 0, refused = 0;
  for (const char* corpus : {"torch_file", "safetensors", "network_file", "npy"}) {
    const std::string folder = source_file(std::string("fuzz/corpus/") + corpus);
    for (const auto& item : std::filesystem::directory_iterator(folder)) {
      try {
        for (const MappedNetwork& network : load_networks(item.path().string()).networks) {
          EXPECT_EQ(network.params.size(), params_size(network.spec)) << item.path();
        }
        ++read;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find('['), std::string::npos) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 10U);
  EXPECT_GT(refused, 50U);
}

TEST(TorchNetworks, FormatsByNameAndEnding) {
  for (const ModelFormat format :
       {ModelFormat::kOpenrnn, ModelFormat::kSafetensors, ModelFormat::kTorch}) {
    EXPECT_EQ(parse_model_format(to_string(format)), format);
  }
  EXPECT_EQ(model_format_of("a/b.pt"), ModelFormat::kTorch);
  EXPECT_EQ(model_format_of("b.openrnn"), ModelFormat::kOpenrnn);
  EXPECT_EQ(model_format_of("b.safetensors"), ModelFormat::kSafetensors);
  EXPECT_MESSAGE(ArgumentError, model_format_of("b.doc"), "says no format, expected one of");
  EXPECT_MESSAGE(ArgumentError, parse_model_format("caffe"), "'caffe', expected one of");
}

TEST(TorchNetworks, WhatDoesNotFitIsRefused) {
  const TempFolder folder;
  const auto save = [&](const MappedModel& model) {
    save_networks(folder / "m", model, ModelFormat::kTorch);
  };
  const MappedNetwork good = network_of({.num_units = 3, .input_size = 2});
  EXPECT_MESSAGE(ArgumentError, save(model_of({})), "no network");
  EXPECT_MESSAGE(ArgumentError, save(model_of({good, good})), "is there twice");
  MappedNetwork bad = good;
  bad.params = values_of(DType::kFloat32, {3}, 1);
  EXPECT_MESSAGE(ArgumentError, save(model_of({bad})), "params has 3 elements, expected 84");
  bad = good;
  bad.slots.emplace("m", values_of(DType::kFloat32, {85}, 1));
  EXPECT_MESSAGE(ArgumentError, save(model_of({bad})), "the slot 'm' of the network has 85");
  bad = network_of({.mode = RnnMode::kGru, .num_units = 3, .input_size = 2});
  bad.initial_c = values_of(DType::kFloat32, {1, 3}, 1);
  EXPECT_MESSAGE(ArgumentError, save(model_of({bad})), "has initial_c, expected none of gru");
  bad = good;
  bad.initial_h = values_of(DType::kFloat32, {2, 3}, 1);
  EXPECT_MESSAGE(ArgumentError, save(model_of({bad})), "expected float32 [1, 3]");
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace openrnn
