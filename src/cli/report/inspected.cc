#include "cli/report/inspected.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/excerpt.h"

namespace openrnn::cli {

namespace {

using nlohmann::ordered_json;

std::string text_of_one(std::monostate) { return "none"; }
std::string text_of_one(bool value) { return value ? "true" : "false"; }
std::string text_of_one(std::int64_t value) { return fmt::format("{}", value); }
std::string text_of_one(double value) { return fmt::format("{}", value); }
std::string text_of_one(const std::string& value) { return "'" + excerpt(value) + "'"; }

template <class T>
std::string text_of_one(const std::vector<T>& values) {
  constexpr std::size_t kMost = 8;
  std::string text = "[";
  for (std::size_t i = 0; i < values.size() && i < kMost; ++i) {
    text += (i ? ", " : "") + text_of_one(values[i]);
  }
  if (values.size() > kMost) text += fmt::format(", ... ({} values)", values.size());
  return text + "]";
}

ordered_json json_of(std::monostate) { return nullptr; }
template <class T>
ordered_json json_of(const T& value) {
  return value;
}

void print_table(const std::vector<TensorInfo>& tensors) {
  std::size_t width = 6;
  for (const TensorInfo& tensor : tensors) width = std::max(width, tensor.name.size());
  fmt::print("{:<{}}  {:<8}  {:<16}  {:>12}\n", "tensor", width, "dtype", "shape", "bytes");
  for (const TensorInfo& tensor : tensors) {
    fmt::print("{:<{}}  {:<8}  {:<16}  {:>12}\n", tensor.name, width, tensor.dtype,
               to_string(tensor.shape), tensor.bytes);
  }
}

// "one bias a gate".
const char* text_of_biases(const RnnSpec& spec) {
  constexpr const char* kTexts[] = {"no biases", "one bias a gate", "two biases a gate"};
  return kTexts[spec.biases_per_gate()];
}

std::string text_of_network(const Inspected::Network& network) {
  std::string text = describe(network.spec);
  text += fmt::format(", {}, {} parameters", text_of_biases(network.spec), network.parameters);
  if (network.has_state) text += ", with initial states";
  if (!network.slots.empty()) text += ", slots " + listed_excerpts(network.slots);
  return text;
}

ordered_json json_of_network(const Inspected::Network& network) {
  ordered_json options = ordered_json::object();
  for (const RnnField& field : rnn_fields()) {
    if (!field.stands_in(network.spec)) continue;
    options[std::string(field.name)] =
        std::visit([](const auto& held) { return json_of(held); }, field.get(network.spec));
  }
  return {{"scope", network.name},
          {"text", text_of_network(network)},
          {"options", std::move(options)},
          {"biases_per_gate", network.spec.biases_per_gate()},
          {"parameters", network.parameters},
          {"initial_state", network.has_state},
          {"slots", network.slots},
          {"tensors", network.tensors}};
}

const char* text_of_checksums(Checksums checksums) {
  switch (checksums) {
    case Checksums::kNone:
      return "which has no checksums";
    case Checksums::kNotVerified:
      return "not verified";
    case Checksums::kRight:
      break;
  }
  return "every checksum is right";
}

const char* json_of_checksums(Checksums checksums) {
  switch (checksums) {
    case Checksums::kNone:
      return "none";
    case Checksums::kNotVerified:
      return "not verified";
    case Checksums::kRight:
      break;
  }
  return "right";
}

}  // namespace

void print_text(const Inspected& inspected) {
  print_table(inspected.tensors);
  std::uint64_t bytes = 0;
  for (const TensorInfo& tensor : inspected.tensors) bytes += tensor.bytes;
  fmt::print("{} tensors, {} bytes in {}, {}, {}\n", inspected.tensors.size(), bytes,
             inspected.path, inspected.kind, text_of_checksums(inspected.checksums));
  for (const NamedValue& value : inspected.values) {
    fmt::print("{}: {}\n", excerpt(value.name),
               std::visit([](const auto& held) { return text_of_one(held); }, value.value));
  }
  for (const Inspected::Network& network : inspected.networks) {
    fmt::print("network{}{}: {}\n  made from {}\n", network.name.empty() ? "" : " in ",
               excerpt(network.name), text_of_network(network), listed_excerpts(network.tensors));
  }
  for (const Inspected::Layer& layer : inspected.layers) {
    fmt::print("layer {}: {}\n", excerpt(layer.name), layer.text);
  }
  if (!inspected.not_understood.empty()) {
    fmt::print("of no network: {}\n", listed_excerpts(inspected.not_understood));
  }
  for (const Inspected::Remark& remark : inspected.remarks) {
    fmt::print("{}{}{}: {}\n", remark.label, remark.scope.empty() ? "" : " in ", remark.scope,
               remark.text);
  }
}

void print_json(const Inspected& inspected) {
  ordered_json out = {{"path", inspected.path},
                      {"kind", inspected.kind},
                      {"checksums", json_of_checksums(inspected.checksums)},
                      {"tensors", ordered_json::array()},
                      {"values", ordered_json::array()},
                      {"networks", ordered_json::array()},
                      {"layers", ordered_json::array()},
                      {"not_understood", inspected.not_understood},
                      {"notes", ordered_json::array()}};
  for (const TensorInfo& tensor : inspected.tensors) {
    out["tensors"].push_back({{"name", tensor.name},
                              {"dtype", tensor.dtype},
                              {"shape", tensor.shape},
                              {"bytes", tensor.bytes}});
  }
  for (const NamedValue& value : inspected.values) {
    out["values"].push_back(
        {{"name", value.name},
         {"value", std::visit([](const auto& held) { return json_of(held); }, value.value)}});
  }
  for (const Inspected::Network& network : inspected.networks) {
    out["networks"].push_back(json_of_network(network));
  }
  for (const Inspected::Layer& layer : inspected.layers) {
    out["layers"].push_back({{"name", layer.name},
                             {"kind", layer.kind},
                             {"text", layer.text},
                             {"tensors", layer.tensors}});
  }
  for (const Inspected::Remark& remark : inspected.remarks) {
    if (remark.label == "network") {
      out["networks"].push_back({{"scope", remark.scope}, {"text", remark.text}});
    } else if (remark.label == "note") {
      out["notes"].push_back(remark.text);
    } else {
      out[remark.label] = remark.text;
    }
  }
  fmt::print("{}\n", out.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace openrnn::cli
