#include "mapping/onnx/values/attributes.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"

namespace openrnn::mapping {

namespace {

template <class T>
const T* find_kind(const OnnxNode& node, std::string_view name, const char* kind) {
  const OnnxAttribute* found = node.find(name);
  if (!found) return nullptr;
  if (const T* value = std::get_if<T>(&found->value)) return value;
  refuse_node(node, message("the attribute ", name, " is of another kind, expected ", kind));
}

}  // namespace

void refuse_node(const OnnxNode& node, const std::string& what) {
  throw UnsupportedError(
      message("[onnx] node '", excerpt(node.label()), "' (", excerpt(node.op_type), "): ", what));
}

const std::int64_t* find_integer(const OnnxNode& node, std::string_view name) {
  return find_kind<std::int64_t>(node, name, "an integer");
}
const float* find_number(const OnnxNode& node, std::string_view name) {
  return find_kind<float>(node, name, "a number");
}
const std::string* find_text(const OnnxNode& node, std::string_view name) {
  return find_kind<std::string>(node, name, "a text");
}
const std::vector<std::int64_t>* find_integers(const OnnxNode& node, std::string_view name) {
  return find_kind<std::vector<std::int64_t>>(node, name, "a list of integers");
}
const std::vector<float>* find_numbers(const OnnxNode& node, std::string_view name) {
  return find_kind<std::vector<float>>(node, name, "a list of numbers");
}
const std::vector<std::string>* find_texts(const OnnxNode& node, std::string_view name) {
  return find_kind<std::vector<std::string>>(node, name, "a list of texts");
}
const OnnxTensor* find_tensor(const OnnxNode& node, std::string_view name) {
  const auto* found = find_kind<std::shared_ptr<const OnnxTensor>>(node, name, "a tensor");
  return found ? found->get() : nullptr;
}

void require_known_attributes(const OnnxNode& node, std::span<const std::string_view> known) {
  for (const OnnxAttribute& attribute : node.attributes) {
    if (std::find(known.begin(), known.end(), attribute.name) != known.end()) continue;
    refuse_node(node, message("the attribute ", excerpt(attribute.name),
                              " is not known, expected those of ONNX's operator"));
  }
}

}  // namespace openrnn::mapping
