// What a checkpoint of PyTorch's names holds of an optimizer: every tensor and value of the file
// by its name, and slots of any dtype.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Names = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;
using Values = std::map<std::string, PlainValue>;

constexpr ModelFormat kFormats[] = {ModelFormat::kTorch, ModelFormat::kNpz,
                                    ModelFormat::kSafetensors};

// Of two networks, an LSTM and a GRU of two directions.
MappedModel trained(const std::string& dictionary) {
  MappedModel model;
  model.networks = {network_of({.num_units = 3, .input_size = 2}, dictionary + "enc", 1),
                    network_of({.mode = RnnMode::kGru,
                                .num_units = 2,
                                .input_size = 3,
                                .direction = Direction::kBidirectional},
                               dictionary + "dec.rnn", 2)};
  std::uint64_t seed = 3;
  for (MappedNetwork& network : model.networks) {
    for (const char* slot : {"exp_avg", "exp_avg_sq"}) {
      network.slots.emplace(slot, values_of(DType::kFloat32, network.params.shape(), seed++));
    }
  }
  model.values = {{"optimizer.step", std::int64_t{12}}};
  return model;
}

Values values_in(const ModelFile& file) {
  Values values;
  for (const NamedValue& value : file.values()) values.emplace(value.name, value.value);
  return values;
}

TEST(TorchSlots, OfAnotherDtypeThanTheNetworkStay) {
  constexpr DType kAll[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};
  for (const DType dtype : kAll) {
    for (const DType of_slots : kAll) {
      MappedModel model;
      model.networks = {
          network_of({.num_layers = 2, .num_units = 3, .input_size = 2, .dtype = dtype}, "n")};
      MappedNetwork& network = model.networks[0];
      const Shape shape = network.params.shape();
      network.slots.emplace("exp_avg", values_of(of_slots, shape, 7));
      network.slots.emplace("exp_avg_sq", values_of(DType::kFloat64, shape, 8));
      model.values = {{"optimizer.step", std::int64_t{2}}};
      for (const ModelFormat format : kFormats) {
        const bool bfloat16 = dtype == DType::kBfloat16 || of_slots == DType::kBfloat16;
        if (format == ModelFormat::kNpz && bfloat16) continue;  // NumPy has none
        const std::string what =
            message(dtype_name(dtype), " ", dtype_name(of_slots), " ", to_string(format));
        const TempFolder folder;
        save_networks(folder / "m", model, format);
        const MappedModel found = load_networks(folder / "m");
        ASSERT_EQ(found.networks.size(), 1U) << what;
        EXPECT_TRUE(same_bytes(found.networks[0].params, network.params)) << what;
        ASSERT_EQ(found.networks[0].slots.size(), 2U) << what;
        for (const auto& [slot, values] : network.slots) {
          EXPECT_TRUE(same_bytes(found.networks[0].slots.at(slot), values)) << what << slot;
        }
      }
    }
  }
}

Names tensors_in(const std::string& path) {
  Names names;
  const ModelFile file(path);
  for (const TensorInfo& info : file.tensors()) names.push_back(info.name);
  std::ranges::sort(names);
  return names;
}

// The names of all parameters, in their order.
Names parameters_of(const std::string& dictionary) {
  Names names;
  for (const char* one : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
    names.push_back(message(dictionary, "enc.", one));
  }
  for (const char* way : {"", "_reverse"}) {
    for (const char* one : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
      names.push_back(message(dictionary, "dec.rnn.", one, way));
    }
  }
  return names;
}

// In a dictionary of the file where all networks are in one, else in 'model'; the optimizer beside
// it in any case.
TEST(TorchSlots, TensorsOfAFile) {
  for (const std::string dictionary : {"", "model.", "state_dict.", "model_state_dict.", "mine."}) {
    for (const ModelFormat format : kFormats) {
      const TempFolder folder;
      save_networks(folder / "m", trained(dictionary), format);
      const bool named =
          format == ModelFormat::kTorch && (dictionary.empty() || dictionary == "mine.");
      Names expected;
      for (const std::string& name : parameters_of(dictionary)) {
        expected.push_back((named ? "model." : "") + name);
      }
      for (int number = 0; number < 12; ++number) {
        for (const char* slot : {"exp_avg", "exp_avg_sq", "step"}) {
          expected.push_back(message("optimizer.state.", number, ".", slot));
        }
      }
      std::ranges::sort(expected);
      EXPECT_EQ(tensors_in(folder / "m"), expected) << dictionary << " " << to_string(format);
      const MappedModel found = load_networks(folder / "m");
      ASSERT_EQ(found.networks.size(), 2U);
      for (const MappedNetwork& network : trained(dictionary).networks) {
        const auto at = std::ranges::find(found.networks, network.name, &MappedNetwork::name);
        ASSERT_NE(at, found.networks.end()) << network.name;
        EXPECT_EQ(at->slots.size(), 2U);
        for (const auto& [slot, values] : network.slots) {
          EXPECT_TRUE(same_bytes(at->slots.at(slot), values)) << network.name << slot;
        }
      }
    }
  }
}

Values defaults_of_adam(const std::string& place) {
  return {{place + "lr", 1e-3},
          {place + "betas", std::vector<double>{0.9, 0.999}},
          {place + "eps", 1e-8},
          {place + "weight_decay", 0.0},
          {place + "amsgrad", false},
          {place + "maximize", false},
          {place + "foreach", {}},
          {place + "capturable", false},
          {place + "differentiable", false},
          {place + "fused", {}}};
}

// Files without an order name the parameters in any case, from the root on.
TEST(TorchSlots, ValuesOfAFileWithoutOrder) {
  const Numbers all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const std::string dictionary : {"", "model."}) {
    const TempFolder folder;
    save_networks(folder / "m", trained(dictionary), ModelFormat::kNpz);
    Values expected = defaults_of_adam("optimizer.param_groups.0.");
    expected["optimizer.param_groups.0.params"] = all;
    expected["optimizer.param_groups.0.param_names"] = parameters_of(dictionary);
    EXPECT_EQ(values_in(ModelFile(folder / "m")), expected) << dictionary;
  }
}

// In the order of the state_dict its names say nothing new; else they are those in it, without the
// dictionary.
TEST(TorchSlots, ValuesOfACheckpoint) {
  const TempFolder folder;
  for (const std::string dictionary : {"", "state_dict."}) {
    MappedModel model = trained(dictionary);
    save_networks(folder / "m", model, ModelFormat::kTorch);
    Values expected = defaults_of_adam("optimizer.param_groups.0.");
    expected["optimizer.param_groups.0.params"] = Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    if (dictionary.empty()) expected["openrnn.model"] = std::string("model");
    EXPECT_EQ(values_in(ModelFile(folder / "m")), expected) << dictionary;
    // The second group first of the first network, and one parameter that no group has.
    model.values.push_back({"optimizer.groups", Numbers{1, 1, 0, 0, 0, 0, 1, 1, 0, 0, -1, 1}});
    model.values.push_back({"optimizer.param_groups.1.lr", 0.5});
    save_networks(folder / "m", model, ModelFormat::kTorch);
    const Names names = parameters_of("");
    const auto named = [&](const Numbers& numbers) {
      Names found;
      for (const std::int64_t n : numbers) found.push_back(names[static_cast<std::size_t>(n)]);
      return found;
    };
    const Numbers zero{2, 3, 4, 5, 8, 9}, one{0, 1, 6, 7, 11};
    expected["optimizer.param_groups.0.params"] = zero;
    expected["optimizer.param_groups.0.param_names"] = named(zero);
    expected["optimizer.param_groups.1.lr"] = 0.5;
    expected["optimizer.param_groups.1.params"] = one;
    expected["optimizer.param_groups.1.param_names"] = named(one);
    EXPECT_EQ(values_in(ModelFile(folder / "m")), expected) << dictionary;
    const MappedModel found = load_networks(folder / "m");
    EXPECT_EQ(found.notes, Names()) << dictionary;
    Values back;
    for (const NamedValue& value : found.values) back.emplace(value.name, value.value);
    EXPECT_EQ(back.at("optimizer.groups"),
              PlainValue(Numbers{1, 1, 0, 0, 0, 0, 1, 1, 0, 0, -1, 1}));
  }
}

// Values of an optimizer at the root are written in its dictionary, as all others are.
TEST(TorchSlots, AnOptimizerAtTheRoot) {
  for (const ModelFormat format : kFormats) {
    MappedModel model = trained("");
    model.values = {{"step", std::int64_t{7}}, {"param_groups.0.lr", 0.25}, {"steps", 3.5}};
    const TempFolder folder;
    save_networks(folder / "m", model, format);
    const MappedModel found = load_networks(folder / "m");
    EXPECT_EQ(found.notes, Names()) << to_string(format);
    Values back;
    for (const NamedValue& value : found.values) back.emplace(value.name, value.value);
    EXPECT_EQ(back.at("optimizer.step"), PlainValue(std::int64_t{7})) << to_string(format);
    EXPECT_EQ(back.at("optimizer.param_groups.0.lr"), PlainValue(0.25)) << to_string(format);
    EXPECT_EQ(back.at("steps"), PlainValue(3.5)) << to_string(format);
    EXPECT_FALSE(back.contains("step") || back.contains("param_groups.0.lr"));
    for (const MappedNetwork& network : found.networks) EXPECT_EQ(network.slots.size(), 2U);
  }
}

// Groups of other parameters than the networks have: nothing of the optimizer is written.
TEST(TorchSlots, GroupsThatDoNotFit) {
  for (const ModelFormat format : kFormats) {
    MappedModel model = trained("");
    model.values.push_back({"optimizer.groups", Numbers{0, 0, 1}});
    const TempFolder folder;
    save_networks(folder / "m", model, format);
    Names expected = parameters_of("");
    std::ranges::sort(expected);
    EXPECT_EQ(tensors_in(folder / "m"), expected) << to_string(format);
    EXPECT_EQ(values_in(ModelFile(folder / "m")), Values()) << to_string(format);
  }
}

// What a file of another framework says of itself is no part of a checkpoint.
TEST(TorchSlots, ValuesOfOtherFrameworks) {
  const auto values_after = [](FileKind kind, std::vector<NamedValue> values) {
    MappedModel model;
    model.kind = kind;
    model.networks = {network_of({.num_units = 3, .input_size = 2}, "n")};
    model.values = std::move(values);
    const TempFolder folder;
    save_networks(folder / "m", model, ModelFormat::kTorch);
    return values_in(ModelFile(folder / "m"));
  };
  const std::vector<NamedValue> given{{"producer_name", std::string("p")}, {"x", std::int64_t{3}}};
  const Values all{{"producer_name", std::string("p")},
                   {"x", std::int64_t{3}},
                   {"openrnn.model", std::string("model")}};
  for (const FileKind kind :
       {FileKind::kKerasH5, FileKind::kKerasWeights, FileKind::kKerasArchive, FileKind::kHdf5}) {
    EXPECT_EQ(values_after(kind, given), Values());
  }
  Values of_onnx = all;
  of_onnx.erase("producer_name");
  EXPECT_EQ(values_after(FileKind::kOnnx, given), of_onnx);
  EXPECT_EQ(values_after(FileKind::kOnnx, {given[0]}), Values());
  for (const FileKind kind : {FileKind::kTorch, FileKind::kSafetensors, FileKind::kTfCheckpoint,
                              FileKind::kNpz, FileKind::kRtneural}) {
    EXPECT_EQ(values_after(kind, given), all);
  }
}

// Dictionaries are made of the points in names; what finds its place taken stands at the root.
TEST(TorchSlots, NamesThatMeet) {
  const auto values_of_file = [](std::vector<NamedValue> values) {
    MappedModel model;
    model.networks = {network_of({.num_units = 3, .input_size = 2}, "n")};
    model.values = std::move(values);
    const TempFolder folder;
    save_networks(folder / "m", model, ModelFormat::kTorch);
    Values found = values_in(ModelFile(folder / "m"));
    EXPECT_EQ(found.erase("openrnn.model"), 1U);
    return found;
  };
  const Values both{{"config", std::int64_t{3}}, {"config.size", std::int64_t{4}}};
  EXPECT_EQ(values_of_file({{"config", std::int64_t{3}}, {"config.size", std::int64_t{4}}}), both);
  expect_error<ArgumentError>(
      [&] {
        values_of_file({{"config.size", std::int64_t{4}}, {"config", std::int64_t{3}}});
      },
      "[save_networks] the value 'config' has the name of a dictionary of the file, expected "
      "another");
  const Values deep{{"a.b.c", std::int64_t{1}}, {"a.b.d", std::int64_t{2}}, {"a.e", 0.5}};
  EXPECT_EQ(values_of_file({{"a.b.c", std::int64_t{1}}, {"a.e", 0.5}, {"a.b.d", std::int64_t{2}}}),
            deep);
}

// ---- Files of others ---------------------------------------------------------------------------

/// A file of several networks and optimizers.
struct Parts {
  std::vector<std::pair<std::string, Array>> tensors = {};
  std::vector<NamedValue> values = {};

  void add_network(const std::string& prefix, const MappedNetwork& network) {
    for (const TorchParameter& one : torch_parameters(network.spec)) {
      tensors.emplace_back(prefix + one.name, part(network.params, one));
    }
  }
  // Slots in the order of the parameters, and the group that names their numbers.
  void add_optimizer(const std::string& prefix, const RnnSpec& spec, const Array& slots,
                     const Names& names = {}) {
    std::int64_t number = 0;
    Numbers numbers;
    for (const TorchParameter& one : torch_parameters(spec)) {
      tensors.emplace_back(message(prefix, "state.", number, ".exp_avg"), part(slots, one));
      numbers.push_back(number++);
    }
    values.push_back({prefix + "param_groups.0.params", numbers});
    if (!names.empty()) values.push_back({prefix + "param_groups.0.param_names", names});
  }
  MappedModel loaded() const {
    std::vector<NamedView> views;
    for (const auto& [name, array] : tensors) views.push_back({name, array.view()});
    const TempFolder folder;
    write_npz(folder / "m", views, values);
    return load_networks(folder / "m");
  }
  static Array part(const Array& of, const TorchParameter& parameter) {
    Array out(DType::kFloat32, parameter.shape);
    const auto from = of.as<float>().subspan(static_cast<std::size_t>(parameter.offset));
    std::copy_n(from.begin(), out.size(), out.as<float>().begin());
    return out;
  }
};

const RnnSpec kTwo{.num_units = 2, .input_size = 1}, kThree{.num_units = 3, .input_size = 1};

Array slots_of(const RnnSpec& spec, std::uint64_t seed) {
  return values_of(DType::kFloat32, {params_size(spec)}, seed);
}

// Which of a file's networks have which slots.
using Slots = std::map<std::string, Array>;
void expect_slots(const MappedModel& model, const Slots& expected) {
  for (const MappedNetwork& network : model.networks) {
    const auto found = expected.find(network.name);
    ASSERT_EQ(network.slots.size(), found == expected.end() ? 0U : 1U) << network.name;
    if (found == expected.end()) continue;
    EXPECT_TRUE(same_bytes(network.slots.at("exp_avg"), found->second)) << network.name;
  }
}

struct Other {
  std::string dictionary, optimizer;
  Names more = {};
};

// The slots of a network's four parameters at the places of the dictionary and the optimizer.
MappedModel loaded(const Other& at) {
  const MappedNetwork network = network_of(kTwo);
  const Array slots = slots_of(kTwo, 9);
  Parts parts;
  parts.add_network(at.dictionary, network);
  parts.add_optimizer(at.optimizer, kTwo, slots);
  for (const std::string& name : at.more) parts.tensors.emplace_back(name, slots);
  MappedModel model = parts.loaded();
  EXPECT_EQ(model.networks.size(), 1U);
  for (MappedNetwork& found : model.networks) {
    EXPECT_TRUE(same_bytes(found.params, network.params));
    for (const auto& [name, values_of_slot] : found.slots) {
      EXPECT_EQ(name, "exp_avg");
      EXPECT_TRUE(same_bytes(values_of_slot, slots));
    }
  }
  return model;
}

// The tensors below one dictionary are the optimizer's parameters, be it the root.
TEST(TorchSlots, OfParametersWhereverTheyLie) {
  for (const Other& at : {Other{"", "opt."}, Other{"", "a.opt."}, Other{"model.", "opt."},
                          Other{"model.rnn.", "opt."}, Other{"model.", "model_opt."},
                          Other{"rnn.", "opt.", {"other.w"}}, Other{"a.rnn.", "opt.", {"b.w"}},
                          Other{"model.rnn.", "opt.", {"model.w"}}}) {
    const MappedModel model = loaded(at);
    EXPECT_EQ(model.networks.at(0).slots.size(), 1U) << at.dictionary << " " << at.optimizer;
    EXPECT_EQ(model.notes, Names()) << at.dictionary << " " << at.optimizer;
    EXPECT_EQ(model.not_understood, at.more);
  }
  for (const Other& at : {Other{"", "opt.", {"w"}}, Other{"a.", "opt.", {"a.w"}}}) {
    const MappedModel model = loaded(at);
    EXPECT_TRUE(model.networks.at(0).slots.empty()) << at.dictionary;
    EXPECT_EQ(model.notes, Names{"of the optimizer's values at 'opt.state' the file does not tell "
                                 "which parameters they are of"});
    EXPECT_EQ(model.not_understood.size(), 5U);
  }
}

// Two programs in one: each optimizer has the parameters of its own dictionary.
TEST(TorchSlots, OfSeveralOptimizers) {
  Parts parts;
  parts.add_network("gen.", network_of(kTwo, "", 1));
  parts.add_network("judge.", network_of(kThree, "", 2));
  const Array two = slots_of(kTwo, 3), three = slots_of(kThree, 4);
  parts.add_optimizer("gen_opt.", kTwo, two);
  parts.add_optimizer("judge_opt.", kThree, three);
  const MappedModel model = parts.loaded();
  EXPECT_EQ(model.networks.size(), 2U);
  EXPECT_EQ(model.notes, Names());
  expect_slots(model, {{"gen", two}, {"judge", three}});
  EXPECT_EQ(model.not_understood, Names());
}

// One optimizer and two dictionaries: the shapes tell whose slots they are; equal ones do not.
TEST(TorchSlots, OfOneOfTwoDictionaries) {
  for (const bool second : {false, true}) {
    Parts parts;
    parts.add_network("a.", network_of(kTwo, "", 1));
    parts.add_network("b.", network_of(kThree, "", 2));
    const RnnSpec& spec = second ? kThree : kTwo;
    const Array slots = slots_of(spec, 3);
    parts.add_optimizer("opt.", spec, slots);
    // Of a group something else is said that begins alike.
    parts.values.push_back({"opt.param_groups.0.params_of", Numbers{0, 1}});
    const MappedModel model = parts.loaded();
    EXPECT_EQ(model.notes, Names());
    expect_slots(model, {{second ? "b" : "a", slots}});
  }
  Parts same;
  same.add_network("a.", network_of(kTwo, "", 1));
  same.add_network("b.", network_of(kTwo, "", 2));
  same.add_optimizer("opt.", kTwo, slots_of(kTwo, 3));
  const MappedModel model = same.loaded();
  expect_slots(model, {});
  EXPECT_EQ(model.notes, Names{"of the optimizer's values at 'opt.state' the file does not tell "
                               "which parameters they are of"});
}

// Names tell it, too; of two tensors of one name it is the first.
TEST(TorchSlots, OfParametersByTheirNames) {
  const Names names{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"};
  Parts parts;
  parts.add_network("model.", network_of(kTwo, "", 1));
  parts.add_network("average.", network_of(kTwo, "", 2));
  const Array slots = slots_of(kTwo, 3);
  parts.add_optimizer("opt.", kTwo, slots, names);
  const MappedModel model = parts.loaded();
  EXPECT_EQ(model.notes, Names());
  expect_slots(model, {{"model", slots}});
  // A slot of another shape than its parameter, as a factored one has.
  for (auto& [name, array] : parts.tensors) {
    if (name == "opt.state.1.exp_avg") array = values_of(DType::kFloat32, {8}, 5);
  }
  const MappedModel factored = parts.loaded();
  expect_slots(factored, {});
  EXPECT_EQ(factored.not_understood.size(), 4U);
}

}  // namespace
}  // namespace openrnn
