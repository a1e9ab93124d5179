// The groups and datasets of a file that is being made.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "formats/hdf5/structure/file.h"
#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

struct ImageNode {
  std::map<std::string, std::unique_ptr<ImageNode>> children;
  std::vector<std::pair<std::string, const PlainValue*>> attributes;
  /// Of a dataset.
  const ConstArrayView* values = nullptr;
  /// Where its elements are; none for a dataset without any.
  std::uint64_t elements = kNoAddress;

  bool is_group() const { return values == nullptr; }
};

/// Throws: ArgumentError "[call] 'path' fault".
[[noreturn]] void fail_image(std::string_view call, std::string_view path, const char* fault);
/// The node of a path; groups on the way are made. Throws: ArgumentError naming `call`.
ImageNode* find_image_node(std::string_view call, ImageNode* root, std::string_view path);
/// Adds an attribute to the node in front of the last '/' of its name. Throws: as above.
void add_image_value(std::string_view call, ImageNode* root, const NamedValue& value);

}  // namespace openrnn::formats
