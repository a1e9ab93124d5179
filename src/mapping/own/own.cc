#include "mapping/own/own.h"

#include <algorithm>
#include <unordered_set>

#include "base/crc/crc32c.h"
#include "base/excerpt.h"
#include "base/message.h"
#include "base/text/json.h"
#include "engine/sum_order.h"
#include "mapping/own/layers.h"
#include "mapping/support/values.h"
#include "openrnn/runtime_file.h"
#include "openrnn/spec_fields.h"
#include "runtime/model_file/header.h"

namespace openrnn::mapping {

namespace {

constexpr std::string_view kSlots = "slots/";

/// The tensors of one network, and what the metadata say of it.
class OwnNetwork {
 public:
  explicit OwnNetwork(const MappedNetwork& network) : network_(network) {
    add("params", network.params);
    if (network.initial_h) add("initial_h", *network.initial_h);
    if (network.initial_c) add("initial_c", *network.initial_c);
    for (const auto& [slot, values] : network.slots) add(std::string(kSlots) + slot, values);
  }
  const std::vector<NamedView>& views() const { return views_; }
  std::string json() const {
    return message("{\"name\": ", json_quoted(network_.name),
                   ", \"spec\": ", spec_to_json(network_.spec), ", \"crc32c\": {", checksums_,
                   "}}");
  }

 private:
  void add(const std::string& part, const Array& values) {
    const std::uint32_t checksum =
        crc32c({static_cast<const char*>(values.data()), values.size_bytes()});
    checksums_ += message(checksums_.empty() ? "" : ", ", json_quoted(part), ": ", checksum);
    views_.push_back({network_.name.empty() ? part : network_.name + "/" + part, values.view()});
  }

  const MappedNetwork& network_;
  std::vector<NamedView> views_;
  std::string checksums_;
};

// Read, not copied from the mapping, whose pages would count as memory of the process, too.
MappedNetwork read_own(const NetworkFile& own, const StoredNetwork& stored, const ModelFile& file) {
  MappedNetwork network{.name = stored.name, .spec = stored.spec, .tensors = stored.tensors};
  const std::size_t prefix = stored.name.empty() ? 0 : stored.name.size() + 1;
  for (std::size_t i = 0; i < stored.tensors.size(); ++i) {
    const std::string_view part = std::string_view(stored.tensors[i]).substr(prefix);
    Array values = file.read(stored.tensors[i]);
    if (crc32c({static_cast<const char*>(values.data()), values.size_bytes()}) !=
        stored.checksums[i]) {
      own.verify(stored);  // which says where
      throw FormatError(file.path(), 0, "the file was changed while it was read");
    }
    if (part == "params") {
      network.params = std::move(values);
    } else if (part == "initial_h") {
      network.initial_h = std::move(values);
    } else if (part == "initial_c") {
      network.initial_c = std::move(values);
    } else {
      network.slots.emplace(part.substr(kSlots.size()), std::move(values));
    }
  }
  return network;
}

// The whole model, where the file has it.
void load_layers(const ModelFile& file, MappedModel* model) {
  const std::map<std::string, std::string> texts = text_values(file.values());
  const auto layers = texts.find(std::string(kLayersKey));
  if (layers == texts.end()) return;
  const auto stored = texts.find(std::string(kLayersChecksumKey));
  const std::string sum = text_checksum(layers->second);
  if (stored == texts.end() || stored->second != sum) {
    throw FormatError(
        file.path(), 0,
        message(kLayersKey, " has the checksum ", sum, ", expected ", kLayersChecksumKey, ", ",
                stored == texts.end() ? "which is not there" : excerpt(stored->second)));
  }
  layers_from_json(file, layers->second, model);
}

}  // namespace

bool is_own(const ModelFile& file) {
  return std::ranges::any_of(
      file.values(), [](const NamedValue& value) { return value.name == runtime::kNetworksKey; });
}

MappedModel load_own(const ModelFile& file) {
  const NetworkFile own(file.path());
  MappedModel model{.kind = FileKind::kSafetensors, .what = "a file of OpenRNN"};
  for (const StoredNetwork& stored : own.networks()) {
    model.networks.push_back(read_own(own, stored, file));
  }
  model.verified = true;
  load_layers(file, &model);
  std::unordered_set<std::string_view> understood;
  for (const MappedLayer& layer : model.layers) {
    understood.insert(layer.tensors.begin(), layer.tensors.end());
  }
  for (const std::string& name : own.other_tensors()) {
    if (!understood.contains(name)) model.not_understood.push_back(name);
  }
  model.values = typed_values(file.values());
  std::erase_if(model.values, [](const NamedValue& value) {
    return value.name.starts_with(runtime::kOwnPrefix);
  });
  return model;
}

void save_own(const std::string& path, const MappedModel& model) {
  std::map<std::string, std::string> metadata = text_values(model.values);
  for (const NamedValue& value : model.values) {
    if (!value.name.starts_with(runtime::kOwnPrefix)) continue;
    throw ArgumentError(message("[save_networks] the value '", excerpt(value.name),
                                "' has a name of OpenRNN's own, expected another one"));
  }
  std::vector<NamedView> views;
  std::string networks;
  for (const MappedNetwork& network : model.networks) {
    const OwnNetwork own(network);
    std::ranges::copy(own.views(), std::back_inserter(views));
    networks += (networks.empty() ? "" : ", ") + own.json();
  }
  networks = "[" + networks + "]";
  if (!model.layers.empty()) {
    std::string layers = layers_to_json(model, &views);
    metadata[std::string(kLayersChecksumKey)] = text_checksum(layers);
    metadata[std::string(kLayersKey)] = std::move(layers);
  }
  metadata[std::string(runtime::kChecksumKey)] = text_checksum(networks);
  metadata[std::string(runtime::kNetworksKey)] = std::move(networks);
  metadata[std::string(runtime::kLayoutKey)] = std::to_string(runtime::kLayoutVersion);
  metadata[std::string(runtime::kArithmeticKey)] = std::to_string(kArithmeticVersion);
  write_safetensors(path, views, {.metadata = std::move(metadata)});
}

}  // namespace openrnn::mapping
