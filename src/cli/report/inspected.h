// What `openrnn inspect` found in a file, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "openrnn/formats_model_file.h"
#include "openrnn/spec_fields.h"

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

  /// A network of a model file.
  struct Network {
    std::string name;
    RnnSpec spec;
    std::int64_t parameters = 0;
    std::vector<std::string> slots, tensors;
    bool has_state = false;
  };

  /// A layer of a whole model.
  struct Layer {
    std::string name, kind, text;
    std::vector<std::string> tensors;
  };

  std::string path;
  /// With an article: 'a checkpoint'.
  std::string kind;
  Checksums checksums = Checksums::kNone;
  std::vector<TensorInfo> tensors;
  std::vector<NamedValue> values;
  std::vector<Remark> remarks;
  std::vector<Network> networks = {};
  std::vector<Layer> layers = {};
  /// Tensors of no network and no layer.
  std::vector<std::string> not_understood = {};

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
