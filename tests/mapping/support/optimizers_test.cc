// An optimizer's slots, steps and groups beside networks: what is told, and what is left alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/temp_folder.h"
#include "mapping/networks.h"

namespace openrnn {
namespace {

using formats::TempFolder;

constexpr ModelFormat kFormats[] = {ModelFormat::kTorch, ModelFormat::kNpz,
                                    ModelFormat::kSafetensors};

MappedModel trained(const std::vector<std::string>& slots, std::vector<NamedValue> values) {
  MappedModel model;
  for (const char* name : {"one", "two"}) {
    model.networks.push_back(network_of({.num_units = 3, .input_size = 2}, name, 1));
    for (const std::string& slot : slots) {
      model.networks.back().slots.emplace(
          slot, values_of(DType::kFloat32, model.networks.back().params.shape(), slot.size()));
    }
  }
  model.values = std::move(values);
  return model;
}

MappedModel there_and_back(const MappedModel& model, ModelFormat format) {
  const TempFolder folder;
  save_networks(folder / "m", model, format);
  return load_networks(folder / "m");
}

std::optional<PlainValue> value_of(const MappedModel& model, const std::string& name) {
  const auto found = std::ranges::find(model.values, name, &NamedValue::name);
  return found == model.values.end() ? std::nullopt : std::optional<PlainValue>(found->value);
}

// Whole as long as every whole number of that size is told from the next one.
TEST(TorchOptimizers, StepsAreWholeOrReal) {
  const std::pair<PlainValue, PlainValue> cases[] = {
      {std::int64_t{7}, std::int64_t{7}}, {2.5, 2.5},       {16777216.0, std::int64_t{16777216}},
      {0x1p53, std::int64_t{1} << 53},    {0x1p54, 0x1p54}, {0x1p70, 0x1p70}};
  for (const ModelFormat format : kFormats) {
    for (const auto& [given, expected] : cases) {
      const MappedModel found =
          there_and_back(trained({"exp_avg"}, {{"optimizer.step", given}}), format);
      EXPECT_EQ(value_of(found, "optimizer.step"), expected) << to_string(format);
      EXPECT_EQ(found.networks.at(0).slots.size(), 1U) << to_string(format);
    }
  }
}

TEST(TorchOptimizers, ParametersInNoGroupAreTold) {
  const std::vector<std::int64_t> groups{0, 0, 0, 0, -1, -1, -1, -1};
  MappedModel model =
      trained({"exp_avg"}, {{"optimizer.step", std::int64_t{4}}, {"optimizer.groups", groups}});
  model.networks[1].slots.clear();
  for (const ModelFormat format : kFormats) {
    const MappedModel found = there_and_back(model, format);
    EXPECT_EQ(value_of(found, "optimizer.groups"), PlainValue(groups)) << to_string(format);
    EXPECT_EQ(found.networks.at(0).slots.size(), 1U) << to_string(format);
    EXPECT_TRUE(found.networks.at(1).slots.empty()) << to_string(format);
  }
}

// A group of which nothing is said has the options of the optimizer that keeps such slots.
TEST(TorchOptimizers, DefaultsAreThoseOfTheSlots) {
  for (const bool adam : {true, false}) {
    const MappedModel found = there_and_back(
        adam ? trained({"exp_avg", "exp_avg_sq"}, {{"optimizer.step", std::int64_t{4}}})
             : trained({"momentum_buffer"}, {}),
        ModelFormat::kNpz);
    for (const char* name : {"betas", "eps", "amsgrad", "capturable"}) {
      EXPECT_EQ(value_of(found, std::string("optimizer.param_groups.0.") + name).has_value(), adam)
          << name;
    }
    for (const char* name : {"momentum", "dampening", "nesterov"}) {
      EXPECT_EQ(value_of(found, std::string("optimizer.param_groups.0.") + name).has_value(), !adam)
          << name;
    }
    EXPECT_EQ(found.networks.at(0).slots.size(), adam ? 2U : 1U);
  }
}

// Slots that count steps need them; a momentum does not.
TEST(TorchOptimizers, SlotsOfAdamNeedTheirSteps) {
  for (const ModelFormat format : kFormats) {
    EXPECT_TRUE(there_and_back(trained({"exp_avg"}, {}), format).networks.at(0).slots.empty());
    EXPECT_EQ(there_and_back(trained({"momentum_buffer"}, {}), format).networks.at(0).slots.size(),
              1U);
  }
}

// Word for word: PyTorch's optimizers fall over a group that lacks one, or train on as another.
TEST(TorchOptimizers, DefaultsAreThoseOfPyTorch) {
  using Options = std::map<std::string, PlainValue>;
  const std::string group = "optimizer.param_groups.0.";
  const auto options_of = [&](const MappedModel& model) {
    Options options;
    for (const NamedValue& value : there_and_back(model, ModelFormat::kNpz).values) {
      const bool of_group = value.name.starts_with(group);
      const std::string name = of_group ? value.name.substr(group.size()) : "";
      if (of_group && !name.starts_with("param")) options[name] = value.value;
    }
    return options;
  };
  EXPECT_EQ(options_of(trained({"exp_avg"}, {{"optimizer.step", std::int64_t{4}}})),
            (Options{{"lr", 1e-3},
                     {"betas", std::vector<double>{0.9, 0.999}},
                     {"eps", 1e-8},
                     {"weight_decay", 0.0},
                     {"amsgrad", false},
                     {"maximize", false},
                     {"foreach", {}},
                     {"capturable", false},
                     {"differentiable", false},
                     {"fused", {}}}));
  EXPECT_EQ(options_of(trained({"momentum_buffer"}, {})), (Options{{"lr", 1e-3},
                                                                   {"momentum", 0.0},
                                                                   {"dampening", 0.0},
                                                                   {"weight_decay", 0.0},
                                                                   {"nesterov", false},
                                                                   {"maximize", false},
                                                                   {"foreach", {}},
                                                                   {"differentiable", false},
                                                                   {"fused", {}}}));
}

// What the file that was read had of its state is written anew, with other numbers.
TEST(TorchOptimizers, OldValuesOfTheStateAreLeftOut) {
  for (const ModelFormat format : kFormats) {
    const std::vector<NamedValue> values{{"optimizer.step", std::int64_t{4}},
                                         {"optimizer.state.99.note", 0.5},
                                         {"optimizer.statement", 0.25},
                                         {"my_values.step", std::int64_t{7}}};
    const MappedModel found = there_and_back(trained({"exp_avg"}, values), format);
    EXPECT_EQ(found.networks.at(0).slots.size(), 1U) << to_string(format);
    EXPECT_EQ(value_of(found, "optimizer.state.99.note"), std::nullopt) << to_string(format);
    EXPECT_EQ(value_of(found, "optimizer.statement"), PlainValue(0.25)) << to_string(format);
    EXPECT_EQ(value_of(found, "my_values.step"), values[3].value) << to_string(format);
  }
}

TEST(TorchOptimizers, OtherValuesOfSuchNamesAreNone) {
  for (const ModelFormat format : kFormats) {
    const NamedValue other{"my_param_groups.a", 0.5};
    const MappedModel found =
        there_and_back(trained({"exp_avg"}, {{"optimizer.step", std::int64_t{4}}, other}), format);
    EXPECT_EQ(found.networks.at(0).slots.size(), 1U) << to_string(format);
    EXPECT_EQ(value_of(found, other.name), other.value) << to_string(format);
  }
}

// Which of two the slots are of, nothing tells.
TEST(TorchOptimizers, OfTwoNoneIsWritten) {
  for (const ModelFormat format : kFormats) {
    const std::vector<NamedValue> values{{"a.param_groups.0.lr", 0.5},
                                         {"a.step", std::int64_t{3}},
                                         {"b.param_groups.0.lr", 0.25},
                                         {"b.step", std::int64_t{4}}};
    const MappedModel found = there_and_back(trained({"exp_avg"}, values), format);
    EXPECT_TRUE(found.networks.at(0).slots.empty()) << to_string(format);
    for (const NamedValue& value : values) {
      EXPECT_EQ(value_of(found, value.name), value.value) << to_string(format) << value.name;
    }
  }
}

// Numbers as keys make a list of dictionaries, and of nothing else.
TEST(TorchValues, NumberedValuesStayWhatTheyAre) {
  const std::vector<NamedValue> values{
      {"sizes.0", std::int64_t{5}},        {"sizes.1", std::int64_t{6}},
      {"layers.0.units", std::int64_t{7}}, {"layers.1.units", std::int64_t{8}},
      {"mixed.0.units", std::int64_t{9}},  {"mixed.1", 0.5},
      {"later.1.units", std::int64_t{10}}};
  const MappedModel found = there_and_back(trained({}, values), ModelFormat::kTorch);
  for (const NamedValue& value : values) {
    EXPECT_EQ(value_of(found, value.name), value.value) << value.name;
  }
}

/// A network of 4 parameters under each of the keys, and slots of those dtypes.
MappedModel read(const std::vector<std::string>& keys, const std::vector<DType>& slots,
                 const Array& step) {
  const RnnSpec spec{.num_units = 2, .input_size = 1};
  const MappedNetwork network = network_of(spec);
  std::vector<NamedView> views;
  std::vector<Array> kept;
  const std::vector<TorchParameter> parameters = torch_parameters(spec);
  for (const std::string& key : keys) {
    for (const TorchParameter& one : parameters) {
      views.push_back({key + one.name,
                       {network.params.as<float>().data() + one.offset, spec.dtype, one.shape}});
    }
  }
  kept.reserve(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    kept.emplace_back(slots[i], parameters[i].shape);
    views.push_back({"opt.state." + std::to_string(i) + ".exp_avg", kept.back().view()});
    views.push_back({"opt.state." + std::to_string(i) + ".step", step.view()});
  }
  const TempFolder folder;
  const std::vector<NamedValue> values{
      {"opt.param_groups.0.params", std::vector<std::int64_t>{0, 1, 2, 3}}};
  write_npz(folder / "m", views, values);
  return load_networks(folder / "m");
}

TEST(TorchOptimizers, SlotsAreOfOneFloatingDtype) {
  const Array step = Array::of<float>({}, std::vector<float>{5});
  constexpr DType f32 = DType::kFloat32, f64 = DType::kFloat64, i32 = DType::kInt32;
  const std::pair<std::vector<DType>, bool> cases[] = {
      {{f32, f32, f32, f32}, true},  {{f64, f64, f64, f64}, true},  {{f32, f32, f32, f64}, false},
      {{f64, f32, f32, f32}, false}, {{i32, i32, i32, i32}, false}, {{f32, f32, i32, f32}, false}};
  for (const auto& [dtypes, good] : cases) {
    const MappedModel found = read({"model."}, dtypes, step);
    ASSERT_EQ(found.networks.size(), 1U);
    EXPECT_EQ(found.networks[0].slots.size(), good ? 1U : 0U);
    if (good) {
      EXPECT_EQ(found.networks[0].slots.at("exp_avg").dtype(), dtypes[0]);
    }
    EXPECT_EQ(value_of(found, "opt.step").has_value(), good);
  }
}

TEST(TorchOptimizers, AStepIsANumberOfAnyDtype) {
  const std::vector<DType> slots(4, DType::kFloat32);
  const auto step_of = [&](const Array& step) {
    return value_of(read({"model."}, slots, step), "opt.step");
  };
  const PlainValue five = std::int64_t{5};
  const float number = 5.0F;
  const Array real = Array::of<float>({}, std::span<const float>(&number, 1));
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    EXPECT_EQ(step_of(cast(real.view(), dtype)), five) << dtype_name(dtype);
  }
  EXPECT_EQ(step_of(Array::of<std::int64_t>({}, std::vector<std::int64_t>{5})), five);
  EXPECT_EQ(step_of(Array::of<std::int32_t>({}, std::vector<std::int32_t>{5})), five);
  EXPECT_EQ(step_of(Array::of<std::uint8_t>({}, std::vector<std::uint8_t>{5})), five);
  EXPECT_FALSE(step_of(Array(DType::kBool, {})));
  EXPECT_FALSE(step_of(Array(DType::kFloat32, {1})));
}

// Of PyTorch before 1.12, whose steps are no tensors; and what else is said of an optimizer.
TEST(TorchOptimizers, StepsThatAreValues) {
  using Values = std::map<std::string, PlainValue>;
  const RnnSpec spec{.num_units = 2, .input_size = 1};
  const MappedNetwork network = network_of(spec);
  const std::vector<std::int64_t> all{0, 1, 2, 3};
  const auto values_with = [&](const std::vector<PlainValue>& steps, DType slot) {
    std::vector<NamedView> views;
    std::vector<Array> kept;
    std::vector<NamedValue> values{{"opt.param_groups.0.params", all}};
    for (const TorchParameter& one : torch_parameters(spec)) {
      views.push_back({"model." + one.name,
                       {network.params.as<float>().data() + one.offset, spec.dtype, one.shape}});
      kept.push_back(Array(slot, one.shape));
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const std::string place = "opt.state." + std::to_string(i);
      views.push_back({place + ".exp_avg", kept[i].view()});
      if (i < steps.size()) values.push_back({place + ".step", steps[i]});
    }
    const TempFolder folder;
    write_npz(folder / "m", views, values);
    const MappedModel model = load_networks(folder / "m");
    EXPECT_EQ(model.networks.at(0).slots.size(), is_floating(slot) ? 1U : 0U);
    Values found;
    for (const NamedValue& value : model.values) {
      if (!value.name.starts_with("opt.state.")) found.emplace(value.name, value.value);
    }
    EXPECT_EQ(found.at("opt.param_groups.0.params"), PlainValue(all));
    found.erase("opt.param_groups.0.params");
    return found;
  };
  const std::int64_t five = 5, six = 6;
  const auto of = [](const PlainValue& value) { return std::vector<PlainValue>(4, value); };
  // All parameters are in the first group, of which nothing is said.
  EXPECT_EQ(values_with(of(five), DType::kFloat32), (Values{{"opt.step", five}}));
  EXPECT_EQ(values_with(of(5.0), DType::kFloat32), (Values{{"opt.step", five}}));
  EXPECT_EQ(values_with(of(2.5), DType::kFloat32), (Values{{"opt.step", 2.5}}));
  EXPECT_EQ(values_with({five, five, 5.0, five}, DType::kFloat32), (Values{{"opt.step", five}}));
  EXPECT_EQ(values_with({five, five, six, five}, DType::kFloat32), Values());
  EXPECT_EQ(values_with({five, five, five}, DType::kFloat32), Values());
  EXPECT_EQ(values_with(of(std::string("5")), DType::kFloat32), Values());
  // Without a slot of the network nothing is.
  EXPECT_EQ(values_with(of(five), DType::kInt32), Values());
}

TEST(TorchOptimizers, OfTwoDictionariesThatFitNoneIsTaken) {
  const std::vector<DType> slots(4, DType::kFloat32);
  const Array step = Array::of<float>({}, std::vector<float>{5});
  const MappedModel found = read({"a.rnn.", "b.rnn."}, slots, step);
  ASSERT_EQ(found.networks.size(), 2U);
  EXPECT_TRUE(found.networks[0].slots.empty() && found.networks[1].slots.empty());
  EXPECT_EQ(found.notes,
            std::vector<std::string>{"of the optimizer's values at 'opt.state' the file does not "
                                     "tell which parameters they are of"});
}

}  // namespace
}  // namespace openrnn
