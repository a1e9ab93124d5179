#include "spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "openrnn/spec_fields.h"

namespace openrnn::testapi {
namespace {

FieldValue to_value(FieldType type, const std::string& text) {
  switch (type) {
    case FieldType::kBool:
      return text == "1";
    case FieldType::kNumber:
      return std::stod(text);
    case FieldType::kPair:
      return std::array{std::stod(text), std::stod(text.substr(text.find(':') + 1))};
    default:
      return text;
  }
}

void put_options(RnnSpec& spec, std::string_view options) {
  while (!options.empty()) {
    const std::string_view one = options.substr(0, options.find(';'));
    options.remove_prefix(std::min(one.size() + 1, options.size()));
    const std::size_t equals = one.find('=');
    const RnnField& field = rnn_field(one.substr(0, equals));
    field.put(spec, to_value(field.type, std::string(one.substr(equals + 1))));
  }
}

}  // namespace

RnnSpec to_spec(const ApiSpec& api) {
  RnnSpec spec;
  spec.mode = parse_rnn_mode(api.mode);
  spec.input_mode = parse_input_mode(api.input_mode);
  spec.direction = parse_direction(api.direction);
  spec.dtype = parse_dtype(api.dtype);
  spec.num_layers = api.num_layers;
  spec.num_units = api.num_units;
  spec.input_size = api.input_size;
  spec.num_proj = api.num_proj;
  spec.training.dropout = api.dropout;
  if (!std::isnan(api.clip_low)) spec.cell_clip = {api.clip_low, api.clip_high};
  if (api.options != nullptr) put_options(spec, api.options);
  return spec;
}

}  // namespace openrnn::testapi
