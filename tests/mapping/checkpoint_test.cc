// Optimizer slots and values in files of PyTorch's names, and in our own; weights that are not
// finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "formats/temp_folder.h"
#include "mapping/networks.h"

namespace openrnn {
namespace {

using formats::TempFolder;

/// Two networks of which one has slots, as a training program might leave them.
MappedModel trained_model() {
  MappedModel model;
  model.networks.push_back(
      network_of({.num_layers = 2, .num_units = 3, .input_size = 2}, "enc", 1));
  model.networks.push_back(
      network_of({.mode = RnnMode::kGru, .num_units = 4, .input_size = 3, .dtype = DType::kFloat64},
                 "dec.rnn", 2));
  for (MappedNetwork& network : model.networks) {
    network.slots.emplace("exp_avg", values_of(network.spec.dtype, network.params.shape(), 7));
    network.slots.emplace("exp_avg_sq", values_of(network.spec.dtype, network.params.shape(), 8));
  }
  model.values = {{"epoch", std::int64_t{3}},
                  {"note", std::string("a \"word\"")},
                  {"config.sizes", std::vector<std::int64_t>{1, 2}},
                  {"config.name", std::string("tagger")},
                  {"optimizer.param_groups.0.lr", 0.25},
                  {"optimizer.param_groups.0.betas", std::vector<double>{0.5, 0.75}},
                  {"optimizer.param_groups.0.amsgrad", false},
                  {"optimizer.param_groups.0.foreach", {}},
                  {"optimizer.step", std::int64_t{120}}};
  return model;
}

std::optional<PlainValue> value_of(const MappedModel& model, const std::string& name) {
  for (const NamedValue& value : model.values) {
    if (value.name == name) return value.value;
  }
  return std::nullopt;
}

constexpr ModelFormat kWithSlots[] = {ModelFormat::kOpenrnn, ModelFormat::kTorch,
                                      ModelFormat::kSafetensors, ModelFormat::kNpz};

TEST(Checkpoints, SlotsAndValuesThereAndBack) {
  const MappedModel model = trained_model();
  for (const ModelFormat format : kWithSlots) {
    const TempFolder folder;
    save_networks(folder / "m", model, format);
    const MappedModel found = load_networks(folder / "m");
    EXPECT_TRUE(found.notes.empty()) << to_string(format);
    EXPECT_TRUE(found.not_understood.empty()) << to_string(format);
    ASSERT_EQ(found.networks.size(), 2U);
    for (const MappedNetwork& given : model.networks) {
      const MappedNetwork& network = found.networks[found.networks[0].name == given.name ? 0 : 1];
      EXPECT_EQ(network.name, given.name) << to_string(format);
      EXPECT_TRUE(same_bytes(network.params, given.params));
      ASSERT_EQ(network.slots.size(), 2U) << to_string(format);
      for (const auto& [slot, values] : given.slots) {
        EXPECT_TRUE(same_bytes(network.slots.at(slot), values)) << to_string(format) << slot;
      }
    }
    for (const NamedValue& value : model.values) {
      EXPECT_EQ(value_of(found, value.name), value.value) << to_string(format) << value.name;
    }
  }
}

TEST(Checkpoints, OneFormatAfterTheOther) {
  const TempFolder folder;
  MappedModel model = trained_model();
  for (const ModelFormat format :
       {ModelFormat::kTorch, ModelFormat::kNpz, ModelFormat::kOpenrnn, ModelFormat::kTorch,
        ModelFormat::kSafetensors, ModelFormat::kTorch}) {
    save_networks(folder / "m", model, format);
    model = load_networks(folder / "m");
  }
  const MappedModel first = trained_model();
  for (const MappedNetwork& given : first.networks) {
    const MappedNetwork& network = model.networks[model.networks[0].name == given.name ? 0 : 1];
    EXPECT_EQ(network.name, given.name);
    EXPECT_TRUE(same_bytes(network.slots.at("exp_avg"), given.slots.at("exp_avg")));
  }
  EXPECT_EQ(value_of(model, "optimizer.step"), PlainValue(std::int64_t{120}));
  EXPECT_EQ(value_of(model, "config.name"), PlainValue(std::string("tagger")));
}

TEST(Checkpoints, WithoutSlotsAndValuesAStateDict) {
  const TempFolder folder;
  MappedModel model = trained_model();
  model.values.clear();
  for (MappedNetwork& network : model.networks) network.slots.clear();
  save_networks(folder / "m", model, ModelFormat::kTorch);
  EXPECT_EQ(ModelFile(folder / "m").tensors()[0].name, "enc.weight_ih_l0");
  // Slots that need a count of steps are of no use without it.
  model = trained_model();
  std::erase_if(model.values,
                [](const NamedValue& value) { return value.name == "optimizer.step"; });
  save_networks(folder / "m", model, ModelFormat::kTorch);
  EXPECT_TRUE(load_networks(folder / "m").networks[0].slots.empty());
  // SGD counts none.
  for (MappedNetwork& network : model.networks) {
    Array moments = std::move(network.slots.at("exp_avg"));
    network.slots.clear();
    network.slots.emplace("momentum_buffer", std::move(moments));
  }
  save_networks(folder / "m", model, ModelFormat::kTorch);
  EXPECT_EQ(load_networks(folder / "m").networks[0].slots.count("momentum_buffer"), 1U);
}

// The groups of an optimizer are those of the parameters that it has; -1 is none of them.
TEST(Checkpoints, ParametersThatTheOptimizerHasNotGot) {
  MappedModel model = trained_model();
  const std::vector<std::int64_t> groups{-1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};
  model.values.push_back({"optimizer.groups", groups});
  const TempFolder folder;
  save_networks(folder / "m", model, ModelFormat::kNpz);
  const ModelFile file(folder / "m");
  std::map<std::string, PlainValue> values;
  for (const NamedValue& value : file.values()) values.emplace(value.name, value.value);
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(values.at("optimizer.param_groups.0.params"),
            PlainValue(Numbers{1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(values.at("optimizer.param_groups.1.params"), PlainValue(Numbers{4, 5, 6, 7}));
  EXPECT_FALSE(values.contains("optimizer.param_groups.2.params"));
  EXPECT_EQ(values.at("optimizer.param_groups.0.lr"), PlainValue(0.25));
  // A group of which nothing is said has Adam's defaults.
  EXPECT_EQ(values.at("optimizer.param_groups.1.lr"), PlainValue(1e-3));
  EXPECT_EQ(values.at("optimizer.param_groups.1.betas"),
            PlainValue(std::vector<double>{0.9, 0.999}));
}

TEST(Checkpoints, BothBiasesOfOneGetItsSlot) {
  for (const ModelFormat format : {ModelFormat::kNpz, ModelFormat::kTorch}) {
    for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kRnnTanh}) {
      MappedModel model;
      model.networks = {
          network_of({.mode = mode, .num_units = 3, .input_size = 2, .single_bias = true}, "n")};
      MappedNetwork& network = model.networks[0];
      network.slots.emplace("exp_avg", values_of(DType::kFloat32, network.params.shape(), 7));
      model.values = {{"optimizer.step", std::int64_t{2}}};
      const TempFolder folder;
      save_networks(folder / "m", model, format);
      const MappedNetwork found = load_networks(folder / "m", {.mode = mode}).networks.at(0);
      const ParamsLayout before(network.spec), after(found.spec);
      const std::span<const float> given = network.slots.at("exp_avg").as<float>(),
                                   slot = found.slots.at("exp_avg").as<float>(),
                                   params = found.params.as<float>();
      for (std::int64_t gate = 0; gate < network.spec.num_gates(); ++gate) {
        const auto at = [&](const ParamsLayout& layout, ParamRole role) {
          return static_cast<std::size_t>(layout.bias(0, 0, role, gate).offset);
        };
        for (std::size_t i = 0; i < 3; ++i) {
          const float expected = given[at(before, ParamRole::kInputBias) + i];
          EXPECT_EQ(slot[at(after, ParamRole::kInputBias) + i], expected);
          EXPECT_EQ(slot[at(after, ParamRole::kRecurrentBias) + i], expected);
          EXPECT_EQ(params[at(after, ParamRole::kRecurrentBias) + i], 0.0F);
        }
      }
    }
  }
}

/// The groups of an optimizer, the names of their parameters, and the steps of each parameter.
struct OptimizerFile {
  std::vector<std::vector<std::int64_t>> groups;
  std::vector<std::vector<std::string>> names = {};
  std::vector<double> steps = {5, 5, 5, 5};
  bool other_tensor = false;
};

// A network of 4 parameters, and slots of an optimizer of somebody else.
MappedModel loaded(const OptimizerFile& given) {
  const RnnSpec spec{.num_units = 2, .input_size = 1};
  const MappedNetwork network = network_of(spec);
  std::vector<Array> steps;
  std::vector<NamedView> views;
  const std::vector<TorchParameter> parameters = torch_parameters(spec);
  const auto at = [&](const TorchParameter& parameter) {
    return ConstArrayView{network.params.as<float>().data() + parameter.offset, spec.dtype,
                          parameter.shape};
  };
  for (const TorchParameter& one : parameters) views.push_back({"model." + one.name, at(one)});
  if (given.other_tensor) views.push_back({"model.other", at(parameters[0])});
  for (const double step : given.steps) {
    steps.push_back(Array::of<float>({}, std::vector<float>{static_cast<float>(step)}));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string place = "opt.state." + std::to_string(i) + ".";
    views.push_back({place + "exp_avg", at(parameters[i])});
    if (i < steps.size()) views.push_back({place + "step", steps[i].view()});
  }
  std::vector<NamedValue> values;
  for (std::size_t i = 0; i < given.groups.size(); ++i) {
    const std::string place = "opt.param_groups." + std::to_string(i);
    values.push_back({place + ".params", given.groups[i]});
    if (i < given.names.size()) values.push_back({place + ".param_names", given.names[i]});
  }
  const TempFolder folder;
  write_npz(folder / "m", views, values);
  return load_networks(folder / "m");
}

TEST(Checkpoints, WhichParametersAnOptimizersNumbersMean) {
  using Names = std::vector<std::string>;
  const Names all{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"};
  const std::string unsaid =
      "of the optimizer's values at 'opt.state' the file does not tell which parameters they are "
      "of";
  struct Case {
    OptimizerFile file;
    bool slots;
  };
  const Case cases[] = {
      {{.groups = {{0, 1, 2, 3}}}, true},
      {{.groups = {{0, 1, 3, 2}}}, false},                        // in another order
      {{.groups = {{1, 2, 3, 4}}}, false},                        // not from 0 on
      {{.groups = {{0, 1, 2}}}, false},                           // fewer than tensors
      {{.groups = {{0, 1, 2, 3}}, .other_tensor = true}, false},  // more tensors
      {{.groups = {{0, 1}, {2, 3}}}, false},                      // several groups
      {{.groups = {{0, 1}, {2, 3}}, .names = {{all[0], all[1]}, {all[2], all[3]}}}, true},
      {{.groups = {{0, 1, 2, 3}}, .names = {all}, .other_tensor = true}, true},
      {{.groups = {{0, 1, 2, 3}}, .names = {{all[0]}}, .other_tensor = true}, false},
  };
  for (const Case& one : cases) {
    const MappedModel found = loaded(one.file);
    ASSERT_EQ(found.networks.size(), 1U);
    const std::size_t number = static_cast<std::size_t>(&one - cases);
    EXPECT_EQ(found.networks[0].slots.size(), one.slots ? 1U : 0U) << number;
    EXPECT_EQ(found.notes, one.slots ? Names() : Names{unsaid}) << number;
    EXPECT_EQ(value_of(found, "opt.step"),
              one.slots ? std::optional<PlainValue>(std::int64_t{5}) : std::nullopt)
        << number;
    if (one.slots) {
      EXPECT_TRUE(same_bytes(found.networks[0].slots.at("exp_avg"), found.networks[0].params));
    }
  }
}

TEST(Checkpoints, StepsOfParameters) {
  const auto step_of = [](std::vector<double> steps) {
    return loaded({.groups = {{0, 1, 2, 3}}, .steps = std::move(steps)});
  };
  const MappedModel apart = step_of({5, 5, 6, 5});
  EXPECT_EQ(apart.networks.at(0).slots.size(), 1U);
  EXPECT_EQ(apart.notes,
            std::vector<std::string>{"the optimizer at 'opt.' has made 5 steps with one parameter "
                                     "and 6 with another, of which no value is made"});
  EXPECT_FALSE(value_of(apart, "opt.step"));
  EXPECT_EQ(value_of(step_of({0, 0, 0, 0}), "opt.step"), PlainValue(std::int64_t{0}));
  EXPECT_EQ(value_of(step_of({2.5, 2.5, 2.5, 2.5}), "opt.step"), PlainValue(2.5));
  // Not of every parameter: none.
  const MappedModel fewer = step_of({5, 5, 5});
  EXPECT_FALSE(value_of(fewer, "opt.step"));
  EXPECT_TRUE(fewer.notes.empty());
}

// What is no network in PyTorch's names is not looked for in TensorFlow's.
TEST(Checkpoints, AnArchiveSaysWhyItHasNoNetwork) {
  const TempFolder folder;
  const Array w = values_of(DType::kFloat32, {12, 3}, 1);
  const NamedView view{"a.weight_ih_l0", w.view()};
  write_npz(folder / "m", {&view, 1}, {});
  const MappedModel found = load_networks(folder / "m");
  EXPECT_TRUE(found.networks.empty());
  EXPECT_EQ(found.notes,
            std::vector<std::string>{"no network was made from 'a.weight_ih_l0' and the like: it "
                                     "has no weight_hh_l0"});
}

// Numbers alone are values; of other types and shapes they are tensors that are not understood.
TEST(Checkpoints, ScalarsOfAnArchive) {
  const TempFolder folder;
  Array flag(DType::kBool, {});
  flag.as<bool>()[0] = true;
  const Array whole = Array::of<std::int64_t>({}, std::vector<std::int64_t>{-7}),
              real = Array::of<double>({}, std::vector<double>{0.5}),
              narrow = Array::of<float>({}, std::vector<float>{0.25F}),
              row = Array::of<std::int64_t>({1}, std::vector<std::int64_t>{3});
  const NamedView views[] = {{"epoch", whole.view()}, {"flag", flag.view()},
                             {"lr", real.view()},     {"narrow", narrow.view()},
                             {"row", row.view()},     {"a.weight_ih_l0", row.view()}};
  write_npz(folder / "m", views, {});
  const MappedModel found = load_networks(folder / "m");
  EXPECT_EQ(value_of(found, "epoch"), PlainValue(std::int64_t{-7}));
  EXPECT_EQ(value_of(found, "lr"), PlainValue(0.5));
  EXPECT_EQ(value_of(found, "flag"), PlainValue(true));
  EXPECT_EQ(found.not_understood, (std::vector<std::string>{"narrow", "row", "a.weight_ih_l0"}));
}

// The names of a checkpoint stay, and are those of its dictionaries.
TEST(Checkpoints, TheDictionaryOfWeights) {
  const TempFolder folder;
  MappedModel model = trained_model();
  model.networks[0].name = "state_dict.enc";
  model.networks[1].name = "state_dict.dec";
  save_networks(folder / "m", model, ModelFormat::kTorch);
  const MappedModel found = load_networks(folder / "m");
  EXPECT_EQ(found.networks[0].name, "state_dict.enc");
  EXPECT_EQ(found.networks[1].name, "state_dict.dec");
  model = trained_model();
  model.networks.resize(1);
  model.networks[0].name.clear();
  save_networks(folder / "m", model, ModelFormat::kTorch);
  EXPECT_EQ(load_networks(folder / "m").networks[0].name, "");
  EXPECT_EQ(ModelFile(folder / "m").tensors()[0].name, "model.weight_ih_l0");
  model.values.push_back({"model", std::int64_t{1}});
  save_networks(folder / "m", model, ModelFormat::kTorch);
  EXPECT_EQ(ModelFile(folder / "m").tensors()[0].name, "state_dict.weight_ih_l0");
  model.values.push_back({"state_dict.a", true});
  model.values.push_back({"model_state_dict", true});
  EXPECT_MESSAGE(ArgumentError, save_networks(folder / "m", model, ModelFormat::kTorch),
                 "expected one of them free");
}

TEST(Checkpoints, GroupsOfParametersStay) {
  MappedModel model = trained_model();
  // Weights decay, biases do not; the second network is frozen, and no optimizer has it.
  const std::vector<std::int64_t> groups{0, 0, 1, 1, 0, 0, 1, 1, -1, -1, -1, -1};
  model.networks[1].slots.clear();
  model.values.push_back({"optimizer.param_groups.1.lr", 0.125});
  model.values.push_back({"optimizer.groups", groups});
  for (const ModelFormat format : {ModelFormat::kTorch, ModelFormat::kNpz}) {
    const TempFolder folder;
    save_networks(folder / "m", model, format);
    const MappedModel found = load_networks(folder / "m");
    EXPECT_TRUE(
        same_bytes(found.networks[0].slots.at("exp_avg"), model.networks[0].slots.at("exp_avg")));
    EXPECT_TRUE(found.networks[1].slots.empty());
    EXPECT_EQ(value_of(found, "optimizer.groups"), PlainValue(groups));
    EXPECT_EQ(value_of(found, "optimizer.param_groups.1.params"),
              PlainValue(std::vector<std::int64_t>{2, 3, 6, 7}));
    EXPECT_EQ(value_of(found, "optimizer.param_groups.1.lr"), PlainValue(0.125));
  }
  // Groups of other parameters than these say nothing.
  model.networks.resize(1);
  const TempFolder folder;
  save_networks(folder / "m", model, ModelFormat::kTorch);
  EXPECT_TRUE(load_networks(folder / "m").networks[0].slots.empty());
}

TEST(Checkpoints, ValuesThatJsonHasNoTextFor) {
  const TempFolder folder;
  MappedModel model;
  model.networks.push_back(network_of({.num_units = 2, .input_size = 1}));
  const double infinity = std::numeric_limits<double>::infinity();
  model.values = {{"a", -infinity},
                  {"b", std::vector<double>{1.0, infinity, -infinity}},
                  {"c", std::vector<std::string>{}},
                  {"d", std::vector<double>{}},
                  {"e", std::string("3")},
                  {"f", std::vector<std::string>{"nan", "x"}},
                  {"g", std::vector<double>{1.0, 2.0}},
                  {"h", 4.0}};
  for (const ModelFormat format :
       {ModelFormat::kOpenrnn, ModelFormat::kSafetensors, ModelFormat::kOnnx}) {
    save_networks(folder / "m", model, format);
    const MappedModel found = load_networks(folder / "m");
    for (const NamedValue& value : model.values) {
      EXPECT_EQ(value_of(found, value.name), value.value) << to_string(format) << value.name;
    }
  }
  model.values = {{"a", std::nan("")}};
  save_networks(folder / "m", model, ModelFormat::kOpenrnn);
  EXPECT_TRUE(std::isnan(std::get<double>(*value_of(load_networks(folder / "m"), "a"))));
}

TEST(NonFinite, WeightsAreKeptAndReported) {
  const TempFolder folder;
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    MappedModel model;
    model.networks.push_back(network_of({.num_units = 33, .input_size = 70, .dtype = dtype}, "n"));
    Array wide = cast(model.networks[0].params.view(), DType::kFloat64);
    const std::size_t last = static_cast<std::size_t>(wide.size()) - 1;
    wide.as<double>()[0] = std::nan("");
    wide.as<double>()[last] = -std::numeric_limits<double>::infinity();
    wide.as<double>()[5000] = std::numeric_limits<double>::infinity();
    model.networks[0].params = cast(wide.view(), dtype);
    save_networks(folder / "m", model, ModelFormat::kTorch);
    const MappedModel found = load_networks(folder / "m");
    EXPECT_TRUE(same_bytes(found.networks[0].params, model.networks[0].params));
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_EQ(found.notes[0], "the network 'n' has 1 NaN and 2 infinite of " +
                                  std::to_string(last + 1) + " values in params");
  }
}

// The largest finite values are finite.
TEST(NonFinite, TheLargestValuesAreNone) {
  const TempFolder folder;
  MappedModel model;
  model.networks.push_back(network_of({.num_units = 2, .input_size = 1}));
  model.networks[0].params.as<float>()[0] = std::numeric_limits<float>::max();
  model.networks[0].params.as<float>()[1] = std::numeric_limits<float>::denorm_min();
  model.networks[0].initial_h = values_of(DType::kFloat32, {1, 2}, 1);
  model.networks[0].initial_h->as<float>()[1] = std::nanf("");
  save_networks(folder / "m", model, ModelFormat::kOpenrnn);
  const MappedModel found = load_networks(folder / "m");
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_EQ(found.notes[0], "the network has 1 NaN and 0 infinite of 2 values in initial_h");
}

}  // namespace
}  // namespace openrnn
