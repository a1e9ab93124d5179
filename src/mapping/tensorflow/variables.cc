#include "mapping/tensorflow/variables.h"

#include <algorithm>

#include "base/utf8.h"
#include "formats/objects/object_graph.h"

namespace openrnn::mapping {

namespace {

using formats::kObjectGraphKey;

// Names by the keys of an object-based checkpoint.
std::unordered_map<std::string, std::string> names_in_object_graph(const ModelFile& file) {
  std::unordered_map<std::string, std::string> names;
  if (file.kind() != FileKind::kTfCheckpoint || !file.contains(kObjectGraphKey)) return names;
  const formats::ObjectGraph graph =
      formats::decode_object_graph(file.path(), file.read_bytes(kObjectGraphKey));
  std::vector<const formats::ObjectAttribute*> variables(graph.nodes.size(), nullptr);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const formats::ObjectAttribute& attribute : graph.nodes[i].attributes) {
      if (attribute.name != formats::kValueAttribute || attribute.full_name.empty()) continue;
      if (!is_printable_utf8(attribute.full_name)) continue;
      names[attribute.key] = attribute.full_name;
      variables[i] = &attribute;
    }
  }
  for (const formats::ObjectNode& node : graph.nodes) {
    for (const formats::ObjectSlot& slot : node.slots) {
      const auto* const of = variables[slot.original];
      const std::string* const key = graph.nodes[slot.node].value_key();
      if (of && key && is_printable_utf8(slot.name)) names[*key] = of->full_name + "/" + slot.name;
    }
  }
  return names;
}

std::optional<PlainValue> scalar_value(const ModelFile& file, const TensorInfo& info) {
  if (!info.shape.empty() || file.kind() == FileKind::kTfGraph) return std::nullopt;
  if (info.dtype == "string") {
    if (info.name == kObjectGraphKey) return std::nullopt;
    std::string text = file.read_bytes(info.name);
    if (!is_valid_utf8(text)) return std::nullopt;
    return text;
  }
  if (info.dtype == "int64") return file.read(info.name).as<std::int64_t>()[0];
  if (info.dtype == "int32") return std::int64_t{file.read(info.name).as<std::int32_t>()[0]};
  if (info.dtype == "bool") return file.read(info.name).as<bool>()[0];
  if (info.dtype == "float32" || info.dtype == "float64") {
    return element(file.read(info.name).view(), 0);
  }
  return std::nullopt;
}

}  // namespace

TfVariables tf_variables(const ModelFile& file) {
  const std::unordered_map<std::string, std::string> names = names_in_object_graph(file);
  TfVariables found;
  std::unordered_map<std::string, const TensorInfo*> first;
  for (const TensorInfo& info : file.tensors()) {
    if (info.name == kObjectGraphKey) continue;
    const auto named = names.find(info.name);
    std::string name = named == names.end() ? info.name : named->second;
    if (std::optional<PlainValue> value = scalar_value(file, info)) {
      found.values.push_back({std::move(name), std::move(*value)});
      continue;
    }
    const auto [at, is_new] = first.emplace(name, &info);
    if (!is_new) {
      const TensorInfo& other = *at->second;
      const bool same = other.shape == info.shape && other.dtype == info.dtype &&
                        info.dtype != "string" &&
                        file.read_bytes(other.name) == file.read_bytes(info.name);
      if (same) continue;
      name = info.name;
    }
    found.variables.push_back({std::move(name), info.name, info.shape, info.dtype});
  }
  return found;
}

}  // namespace openrnn::mapping
