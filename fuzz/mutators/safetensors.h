// Changes files of safetensors, an index of several, and OpenRNN's own: the header's length, the
// places of the tensors and the checksums of our own files stay right.
#pragma once

#include <array>
#include <nlohmann/json.hpp>

#include "base/crc/crc32c.h"
#include "formats/coding.h"
#include "formats/safetensors/dtypes.h"
#include "json.h"
#include "openrnn/params.h"
#include "spec/json.h"

namespace openrnn::fuzz {

using OrderedJson = nlohmann::ordered_json;

/// The tensors one behind the other, of the sizes that their shapes say; `data` as long as they
/// are. Nothing is done for a header that is none, or of far more bytes.
inline void place_tensors(OrderedJson* header, std::string* data) {
  constexpr std::uint64_t kMostBytes = 1u << 16;
  std::uint64_t end = 0;
  std::vector<std::array<std::uint64_t, 2>> places;
  for (const auto& [name, tensor] : header->items()) {
    if (name == "__metadata__") continue;
    const auto* const type = formats::find_safetensors_type(tensor.at("dtype").get<std::string>());
    std::uint64_t bits = type ? type->bits : 32;
    for (const OrderedJson& size : tensor.at("shape")) {
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() > kMostBytes) return;
      bits *= size.get<std::uint64_t>();
      if (bits > 8 * kMostBytes) return;
    }
    places.push_back({end, end + bits / 8});
    end += bits / 8;
    if (end > kMostBytes) return;
  }
  std::size_t i = 0;
  for (auto& [name, tensor] : header->items()) {
    if (name != "__metadata__") tensor["data_offsets"] = places[i++];
  }
  data->resize(static_cast<std::size_t>(end));
}

/// Parameters as many as the networks of a file of our own have.
inline void fit_params(const OrderedJson& networks, OrderedJson* header) {
  for (const OrderedJson& network : networks) {
    const std::string text = network.at("spec").dump(), name = network.at("name");
    const std::string path = "m";
    JsonScanner json(path, 0, text);
    const RnnSpec spec = spec::spec_from_json(json);
    const std::string params = name.empty() ? "params" : name + "/params";
    if (!header->contains(params)) continue;
    (*header)[params]["shape"] = {params_size(spec)};
  }
}

/// The checksums of the tensors, and that of the networks.
inline void sum_networks(OrderedJson networks, const std::string& data, OrderedJson* header) {
  for (OrderedJson& network : networks) {
    const std::string name = network.at("name");
    for (auto& [part, sum] : network.at("crc32c").items()) {
      const std::string tensor = name.empty() ? part : name + "/" + part;
      if (!header->contains(tensor)) continue;
      const OrderedJson& place = header->at(tensor).at("data_offsets");
      if (!place.at(0).is_number_unsigned() || !place.at(1).is_number_unsigned()) continue;
      const auto begin = place.at(0).get<std::size_t>(), end = place.at(1).get<std::size_t>();
      if (begin <= end && end <= data.size()) {
        sum = crc32c(std::string_view(data).substr(begin, end - begin));
      }
    }
  }
  OrderedJson& metadata = (*header)["__metadata__"];
  const std::string text = networks.dump();
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08x", crc32c(text));
  metadata["openrnn.networks"] = text;
  metadata["openrnn.checksum"] = digits;
}

/// All that a header says of sizes, places and checksums. Only where it is JSON and whole.
inline void set_right(std::string* json, std::string* data, Chance& chance) {
  try {
    OrderedJson header = OrderedJson::parse(*json);
    OrderedJson networks;
    if (header.contains("__metadata__") && header["__metadata__"].contains("openrnn.networks")) {
      networks = OrderedJson::parse(header["__metadata__"]["openrnn.networks"].get<std::string>());
    }
    if (!networks.is_null()) {
      try {
        fit_params(networks, &header);
      } catch (const Error&) {  // no spec: the reader is to say so
      }
    }
    place_tensors(&header, data);
    if (!networks.is_null() && !chance.one_in(8)) sum_networks(networks, *data, &header);
    *json = header.dump();
  } catch (const OrderedJson::exception&) {
  }
}

/// Something in the networks of a file of our own, or in the spec of one; false for another file.
inline bool change_networks(std::string* json, Chance& chance) {
  OrderedJson header = OrderedJson::parse(*json, nullptr, false);
  if (!header.is_object() || !header.contains("__metadata__")) return false;
  OrderedJson& metadata = header["__metadata__"];
  if (!metadata.is_object() || !metadata.contains("openrnn.networks")) return false;
  OrderedJson& networks = metadata["openrnn.networks"];
  if (!networks.is_string()) return false;
  std::vector<std::string> tokens = tokens_of(networks.get<std::string>());
  if (tokens.empty()) return false;
  JsonMutator(&tokens, chance).change(1);
  networks = text_of(tokens);
  try {
    *json = header.dump();
  } catch (const OrderedJson::exception&) {  // no UTF-8
    return false;
  }
  return true;
}

inline bool mutate_safetensors(std::string* bytes, Chance& chance) {
  if (bytes->starts_with('{')) {
    // The files of an index are behind its first zero byte.
    const std::size_t end = std::min(bytes->find('\0'), bytes->size());
    std::string index = bytes->substr(0, end);
    std::string shard = bytes->substr(std::min(bytes->size(), end + 1));
    if (shard.empty() || chance.one_in(2) || !mutate_safetensors(&shard, chance)) {
      mutate_json(&index, chance);
    }
    *bytes = index + '\0' + shard;
    return true;
  }
  constexpr std::size_t kLength = 8;
  std::uint64_t size = 0;
  if (bytes->size() < kLength) return false;
  std::memcpy(&size, bytes->data(), sizeof size);
  if (size > bytes->size() - kLength) return false;
  std::string json = bytes->substr(kLength, static_cast<std::size_t>(size));
  std::string data = bytes->substr(kLength + static_cast<std::size_t>(size));
  if (!data.empty() && chance.one_in(8)) {
    chance.change_bytes(&data, 0);
  } else if (chance.one_in(4) || !change_networks(&json, chance)) {
    mutate_json(&json, chance);
  }
  if (!chance.one_in(6)) set_right(&json, &data, chance);
  bytes->clear();
  formats::put_fixed(bytes, std::uint64_t{json.size()});
  *bytes += json + data;
  return true;
}

}  // namespace openrnn::fuzz
