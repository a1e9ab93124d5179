#include "formats/safetensors/header.h"

#include "formats/safetensors/json_reader.h"

namespace openrnn::formats {

namespace {

class HeaderReader : public JsonReader {
 public:
  HeaderReader(const std::string& path, std::uint64_t offset) : JsonReader(path, offset) {
    expect_in(Place::kOutside);
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kOutside) {
      expect_in(Place::kRoot);
    } else if (place_ == Place::kRoot && key_ == kMetadata) {
      expect_in(Place::kMetadata);
    } else if (place_ == Place::kRoot) {
      header_.tensors.push_back({.name = key_, .dtype = {}, .shape = {}});
      has_dtype_ = has_shape_ = has_offsets_ = false;
      expect_in(Place::kTensor);
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::kRoot) {
      take_name("tensor", name, &names_);
    } else if (place_ == Place::kMetadata) {
      take_name("the key of metadata", name, &metadata_names_);
    } else {
      bool* const has = name == "dtype"          ? &has_dtype_
                        : name == "shape"        ? &has_shape_
                        : name == "data_offsets" ? &has_offsets_
                                                 : nullptr;
      if (!has) refuse("'" + excerpt(name) + "'");
      if (*has) fail(what_ + " has " + name + " twice, expected it once");
      *has = true;
    }
    key_ = std::move(name);
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace_back(key_, std::move(value));
    } else if (place_ == Place::kTensor && key_ == "dtype") {
      if (!is_printable_utf8(value)) refuse("a control character");
      header_.tensors.back().dtype = std::move(value);
    } else {
      refuse("'" + excerpt(value) + "'");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && key_ == "shape") {
      expect_in(Place::kShape);
    } else if (place_ == Place::kTensor && key_ == "data_offsets") {
      offsets_ = 0;
      expect_in(Place::kOffsets);
    } else {
      refuse("an array");
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape && value <= static_cast<std::uint64_t>(INT64_MAX)) {
      header_.tensors.back().shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsets && offsets_ < 2) {
      HeaderTensor& tensor = header_.tensors.back();
      (offsets_++ == 0 ? tensor.begin : tensor.end) = value;
    } else {
      refuse(message(value));
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_ != 2) refuse(message(offsets_, " of them"));
    expect_in(Place::kTensor);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && !(has_dtype_ && has_shape_ && has_offsets_)) {
      refuse("not all of them");
    }
    expect_in(place_ == Place::kRoot ? Place::kOutside : Place::kRoot);
    return true;
  }

  SafetensorsHeader header() && { return std::move(header_); }

 private:
  enum class Place { kOutside, kRoot, kMetadata, kTensor, kShape, kOffsets };
  static constexpr const char* kMetadata = "__metadata__";

  void expect_in(Place place) {
    place_ = place;
    what_ = "the header";
    expected_ = place == Place::kRoot ? "an object for each tensor" : "an object";
    if (place == Place::kMetadata) {
      what_ = "the metadata";
      expected_ = "strings";
    } else if (place == Place::kTensor || place == Place::kShape || place == Place::kOffsets) {
      what_ = "tensor '" + excerpt(header_.tensors.back().name) + "'";
      expected_ = place == Place::kTensor  ? "dtype, shape and data_offsets"
                  : place == Place::kShape ? "sizes from 0 to 2^63 - 1"
                                           : "two data_offsets";
    }
  }

  SafetensorsHeader header_;
  Place place_ = Place::kOutside;
  std::string key_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  int offsets_ = 0;
  std::unordered_set<std::string> names_, metadata_names_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& path, std::uint64_t offset,
                                           std::string_view json) {
  HeaderReader reader(path, offset);
  reader.read(json);
  return std::move(reader).header();
}

}  // namespace openrnn::formats
