// Attributes of a node by kind.
#pragma once

#include "openrnn/formats_onnx.h"

namespace openrnn::mapping {

/// "[onnx] node 'rnn' (LSTM): what". Throws: UnsupportedError.
[[noreturn]] void refuse_node(const OnnxNode& node, const std::string& what);

// Null where there is none of the name. Throws: UnsupportedError for one of another kind.
const std::int64_t* find_integer(const OnnxNode& node, std::string_view name);
const float* find_number(const OnnxNode& node, std::string_view name);
const std::string* find_text(const OnnxNode& node, std::string_view name);
const std::vector<std::int64_t>* find_integers(const OnnxNode& node, std::string_view name);
const std::vector<float>* find_numbers(const OnnxNode& node, std::string_view name);
const std::vector<std::string>* find_texts(const OnnxNode& node, std::string_view name);
const OnnxTensor* find_tensor(const OnnxNode& node, std::string_view name);

inline std::int64_t integer_or(const OnnxNode& node, std::string_view name, std::int64_t other) {
  const std::int64_t* found = find_integer(node, name);
  return found ? *found : other;
}

/// Throws: UnsupportedError for an attribute that is not among `known`.
void require_known_attributes(const OnnxNode& node, std::span<const std::string_view> known);

}  // namespace openrnn::mapping
