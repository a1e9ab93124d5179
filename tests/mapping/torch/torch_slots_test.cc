// What a checkpoint of PyTorch's names holds of an optimizer: every tensor and value of the file
// by its name, and slots of any dtype.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"

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
    const bool known = dictionary.size() > 5;
    for (const ModelFormat format : kFormats) {
      const TempFolder folder;
      save_networks(folder / "m", trained(dictionary), format);
      const bool named = format == ModelFormat::kTorch && (!known || dictionary == "mine.");
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

// ---- Files of others ---------------------------------------------------------------------------

struct Other {
  std::string dictionary, optimizer;
  Names more = {};
};

// The slots of a network's four parameters at the places of the dictionary and the optimizer.
MappedModel loaded(const Other& at) {
  const RnnSpec spec{.num_units = 2, .input_size = 1};
  const MappedNetwork network = network_of(spec);
  const Array slots = values_of(DType::kFloat32, network.params.shape(), 9);
  std::vector<NamedView> views;
  const auto view = [&](const Array& of, const TorchParameter& parameter) {
    return ConstArrayView{of.as<float>().data() + parameter.offset, spec.dtype, parameter.shape};
  };
  std::int64_t number = 0;
  for (const TorchParameter& one : torch_parameters(spec)) {
    views.push_back({at.dictionary + one.name, view(network.params, one)});
    views.push_back({message(at.optimizer, "state.", number++, ".exp_avg"), view(slots, one)});
  }
  for (const std::string& name : at.more) views.push_back({name, slots.view()});
  const NamedValue values[] = {{at.optimizer + "param_groups.0.params", Numbers{0, 1, 2, 3}}};
  const TempFolder folder;
  write_npz(folder / "m", views, values);
  MappedModel model = load_networks(folder / "m");
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
                          Other{"rnn.", "opt.", {"other.w"}}, Other{"a.rnn.", "opt.", {"b.w"}}}) {
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

}  // namespace
}  // namespace openrnn
