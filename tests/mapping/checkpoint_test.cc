// Optimizer slots and values in files of PyTorch's names, and in our own; weights that are not
// finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
