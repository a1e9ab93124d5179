// What `openrnn inspect` found in a file, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "openrnn/formats_model_file.h"

namespace openrnn::cli {

enum class Checksums : std::uint8_t { kNone, kNotVerified, kRight };

struct Inspected {
  /// 'network', 'note', 'options' or 'arithmetic', and what there is to say.
  struct Remark {
    std::string label;
    /// Of a network.
    std::string scope;
    std::string text;
  };

  std::string path;
  /// With an article: 'a checkpoint'.
  std::string kind;
  Checksums checksums = Checksums::kNone;
  std::vector<TensorInfo> tensors;
  std::vector<NamedValue> values;
  std::vector<Remark> remarks;

  void add(const std::string& label, const std::string& text) {
    remarks.push_back({label, {}, text});
  }
};

/// A table, and one line for each value and remark; long values are shortened.
void print_text(const Inspected& inspected);
/// One object; nothing is shortened. A byte that is not UTF-8 is printed as U+FFFD, and a value
/// that is not finite as null.
void print_json(const Inspected& inspected);

}  // namespace openrnn::cli
