#include "formats/hdf5/image/tree.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"

namespace openrnn::formats {

void fail_image(std::string_view call, std::string_view path, const char* fault) {
  throw ArgumentError(message("[", call, "] '", excerpt(path), "' ", fault));
}

ImageNode* find_image_node(std::string_view call, ImageNode* root, std::string_view path) {
  ImageNode* node = root;
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string name(rest.substr(0, end));
    if (name.empty() || name == "." || end + 1 == rest.size() || path.size() > kMaxHdf5Name) {
      fail_image(call, path, "is no path, expected short names between single '/'");
    }
    if (!node->is_group()) fail_image(call, path, "goes through a dataset, expected groups");
    std::unique_ptr<ImageNode>& child = node->children[name];
    if (!child) child = std::make_unique<ImageNode>();
    node = child.get();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return node;
}

void add_image_value(std::string_view call, ImageNode* root, const NamedValue& value) {
  const std::size_t slash = value.name.rfind('/');
  const bool in_root = slash == std::string::npos;
  ImageNode* const node =
      find_image_node(call, root, in_root ? "" : std::string_view(value.name).substr(0, slash));
  const std::string name = in_root ? value.name : value.name.substr(slash + 1);
  const auto same = [&](const auto& one) { return one.first == name; };
  if (name.empty() || !is_printable_utf8(name) || name.size() > kMaxHdf5Name ||
      std::any_of(node->attributes.begin(), node->attributes.end(), same)) {
    fail_image(call, value.name,
               "is no name of an attribute or there twice, expected unequal ones");
  }
  node->attributes.emplace_back(name, &value.value);
}

}  // namespace openrnn::formats
