#include "formats/json_models/json_models.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/file/owned_source.h"

namespace openrnn::formats {

namespace {

using nlohmann::json;

constexpr std::size_t kMostDepth = 64, kMostWeightRank = 4;

class JsonModel {
 public:
  explicit JsonModel(std::unique_ptr<ByteSource> file) : path_(file->path()) {
    if (file->size() > kMostJsonModel) {
      fail(message("it has ", file->size(), " bytes, expected at most ", kMostJsonModel));
    }
    const std::string text = file->read_string(0, file->size());
    check_depth(text);
    try {
      root_ = json::parse(text, [this](int, json::parse_event_t event, const json& value) {
        take_key(event, value);
        return true;
      });
    } catch (const json::exception& error) {
      fail("this is no JSON: " + excerpt(error.what()));
    }
    if (!root_.is_object()) fail("it is no JSON object, expected one");
  }

  const json& root() const { return root_; }
  FileContents take(FileKind kind) {
    contents_.kind = kind;
    return std::move(contents_);
  }
  [[noreturn]] void fail(const std::string& what) const { throw FormatError(path_, 0, what); }

  /// Numbers, texts and flags; others are left out.
  void add_value(const std::string& name, const json& value) {
    if (!is_printable_utf8(name)) fail("a key has a control character, expected none");
    if (value.is_string()) {
      contents_.values.push_back({name, value.get<std::string>()});
    } else if (value.is_boolean()) {
      contents_.values.push_back({name, value.get<bool>()});
    } else if (value.is_number_integer() &&
               !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)) {
      contents_.values.push_back({name, value.get<std::int64_t>()});
    } else if (value.is_number()) {  // also an integer that no int64 holds
      contents_.values.push_back({name, value.get<double>()});
    }
  }

  /// A list of numbers, or of lists of one shape.
  void add_weights(const std::string& name, const json& list) {
    Shape shape;
    const json* first = &list;
    while (first->is_array() && shape.size() < kMostWeightRank) {
      shape.push_back(static_cast<std::int64_t>(first->size()));
      if (first->empty()) break;
      first = &first->front();
    }
    std::string bytes;
    append_weights(name, list, shape, 0, &bytes);
    auto source = std::make_unique<OwnedSource>(path_, std::move(bytes));
    contents_.tensors.push_back(
        {.name = name, .dtype = "float32", .shape = std::move(shape), .bytes = source->size()});
    contents_.places.push_back({.extent = contents_.extents.size()});
    contents_.extents.push_back({source.get(), 0, source->size(), std::nullopt});
    contents_.sources.push_back(std::move(source));
  }

 private:
  // The parser keeps the last one of a key that is there twice.
  void take_key(json::parse_event_t event, const json& value) {
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event != json::parse_event_t::key) return;
    const auto& key = value.get_ref<const std::string&>();
    if (!keys_.back().insert(key).second) {
      fail(message("'", excerpt(key), "' is there twice in an object, expected once"));
    }
  }

  // Values are freed, and lists of weights read, level by level on the stack.
  void check_depth(std::string_view text) const {
    std::size_t depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quoted) {
        if (c == '\\') ++i;
        quoted = c != '"';
      } else if (c == '"') {
        quoted = true;
      } else if (c == '[' || c == '{') {
        if (++depth > kMostDepth) {
          throw FormatError(path_, i, message("values are more than ", kMostDepth, " deep"));
        }
      } else if ((c == ']' || c == '}') && depth > 0) {
        --depth;
      }
    }
  }

  void append_weights(const std::string& name, const json& value, const Shape& shape,
                      std::size_t level, std::string* bytes) const {
    if (level == shape.size()) {
      if (!value.is_number()) fail("'" + excerpt(name) + "' has no number where one is expected");
      const auto number = static_cast<float>(value.get<double>());
      bytes->append(reinterpret_cast<const char*>(&number), sizeof number);
      return;
    }
    if (!value.is_array() || static_cast<std::int64_t>(value.size()) != shape[level]) {
      fail(message("'", excerpt(name), "' has lists of unequal length, expected ", shape[level],
                   " values"));
    }
    for (const json& one : value) append_weights(name, one, shape, level + 1, bytes);
  }

  std::string path_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects that are open
  json root_;
  FileContents contents_;
};

}  // namespace

FileKind kind_of_json_model(const ByteSource& file) {
  if (file.size() > kMostJsonModel) return FileKind::kUnknown;
  const std::string text = file.read_string(0, file.size());
  const auto has = [&](const char* key) { return text.find(key) != std::string::npos; };
  if (has("\"layers\"") && has("\"in_shape\"")) return FileKind::kRtneural;
  if (has("\"architecture\"") && has("\"weights\"")) return FileKind::kNam;
  return FileKind::kUnknown;
}

FileContents read_rtneural(std::unique_ptr<ByteSource> file) {
  JsonModel model(std::move(file));
  const json& root = model.root();
  const auto layers = root.find("layers");
  if (layers == root.end() || !layers->is_array()) model.fail("'layers' is no list, expected one");
  for (std::size_t i = 0; i < layers->size(); ++i) {
    const json& layer = (*layers)[i];
    const std::string prefix = message("layers.", i, ".");
    if (!layer.is_object()) model.fail(prefix + " is no object, expected one");
    for (const auto& [key, value] : layer.items()) {
      if (key != "weights") {
        // A function that is no text is another one, and is not to be taken for none.
        const bool as_text = key == "activation" && value.is_structured();
        model.add_value(prefix + key, as_text ? json(value.dump()) : value);
        continue;
      }
      if (!value.is_array()) model.fail(prefix + "weights is no list, expected one");
      for (std::size_t k = 0; k < value.size(); ++k) {
        if (value[k].is_array()) model.add_weights(message(prefix, "weights.", k), value[k]);
      }
    }
  }
  return model.take(FileKind::kRtneural);
}

FileContents read_nam(std::unique_ptr<ByteSource> file) {
  JsonModel model(std::move(file));
  for (const auto& [key, value] : model.root().items()) {
    if (key == "weights") {
      if (!value.is_array()) model.fail("'weights' is no list, expected one");
      model.add_weights(key, value);
    } else if (value.is_object()) {
      for (const auto& [name, one] : value.items()) model.add_value(message(key, ".", name), one);
    } else {
      model.add_value(key, value);
    }
  }
  return model.take(FileKind::kNam);
}

}  // namespace openrnn::formats
