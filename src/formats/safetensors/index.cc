#include "formats/safetensors/header.h"
#include "formats/safetensors/json_reader.h"

namespace openrnn::formats {

namespace {

// A bare name: a path could lead to any file of the machine.
bool is_name_in_folder(const std::string& name) {
  return is_printable_utf8(name) && !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos && name.find('\\') == std::string::npos;
}

// {"metadata": {...}, "weight_map": {tensor: file}}; anything else in it is skipped.
class IndexReader : public JsonReader {
 public:
  explicit IndexReader(const std::string& path) : JsonReader(path, 0) {
    what_ = "the index";
    expected_ = "an object with a weight_map of tensors and files";
  }

  bool null() override { return skipped("null"); }
  bool boolean(bool value) override { return skipped(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return number(message(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(message(value)); }
  bool number_float(number_float_t, const string_t& text) override {
    return skipped(excerpt(text));
  }
  bool start_array(std::size_t) override {
    skipped("an array");
    ++depth_;
    return true;
  }
  bool end_array() override { return end_object(); }

  bool start_object(std::size_t) override {
    if (depth_ == 1) {
      in_map_ = key_ == "weight_map";
      in_metadata_ = key_ == "metadata";
      if (in_map_ && has_map_) fail("the index has two weight_maps, expected one");
      has_map_ |= in_map_;
    } else if (depth_ > 1) {
      skipped("an object");
    }
    ++depth_;
    return true;
  }

  bool end_object() override {
    if (--depth_ == 1) in_map_ = in_metadata_ = false;
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ == 2 && in_map_) take_name("tensor", name, &names_);
    key_ = std::move(name);
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_map_) {
      if (!is_name_in_folder(value)) {
        fail(message("tensor '", excerpt(key_), "' is in file '", excerpt(value),
                     "', expected the name of one in the folder of the index"));
      }
      index_.weight_map.emplace_back(key_, std::move(value));
      return true;
    }
    return number(value);
  }

  SafetensorsIndex index() && {
    if (!has_map_) refuse("no weight_map");
    return std::move(index_);
  }

 private:
  // A value of no interest, but for the weight_map, which has strings alone.
  bool skipped(const std::string& found) {
    if (depth_ == 0 || (depth_ == 2 && in_map_)) refuse(found);
    if (depth_ == 1 && key_ == "weight_map") refuse(found);
    return true;
  }
  bool number(const std::string& text) {
    skipped(excerpt(text));
    if (depth_ == 2 && in_metadata_) index_.metadata.emplace_back(key_, text);
    return true;
  }

  SafetensorsIndex index_;
  std::string key_;
  std::size_t depth_ = 0;
  bool in_map_ = false, in_metadata_ = false, has_map_ = false;
  std::unordered_set<std::string> names_;
};

}  // namespace

SafetensorsIndex parse_safetensors_index(const std::string& path, std::string_view json) {
  IndexReader reader(path);
  reader.read(json);
  return std::move(reader).index();
}

}  // namespace openrnn::formats
