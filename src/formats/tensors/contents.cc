#include "formats/tensors/contents.h"

#include <algorithm>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"

namespace openrnn::formats {

std::optional<std::uint64_t> element_count(const Shape& shape) {
  std::int64_t count = 1;
  bool overflow = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    overflow |= __builtin_mul_overflow(count, size, &count);
  }
  // A zero dimension makes any product zero, also one that overflowed before it.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  if (overflow) return std::nullopt;
  return static_cast<std::uint64_t>(count);
}

std::optional<DType> find_dtype(std::string_view name) {
  try {
    return parse_dtype(name);
  } catch (const ArgumentError&) {
    return std::nullopt;
  }
}

void check_named_views(std::string_view call, std::span<const NamedView> tensors) {
  std::unordered_set<std::string_view> names;
  for (const NamedView& tensor : tensors) {
    const char* fault = tensor.name.empty()                 ? "is empty"
                        : !is_printable_utf8(tensor.name)   ? "is not printable UTF-8"
                        : !names.insert(tensor.name).second ? "is given twice"
                                                            : nullptr;
    if (fault) {
      throw ArgumentError(message("[", call, "] the name '", excerpt(tensor.name), "' ", fault,
                                  ", expected unequal names of printable UTF-8"));
    }
    tensor.values.size_bytes();
  }
}

}  // namespace openrnn::formats
