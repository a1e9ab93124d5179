#include "formats/torch/objects.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/torch/tensor_args.h"

namespace openrnn::formats {

namespace {

// No state_dict and no optimizer comes near it; a list that contains itself has no end.
constexpr int kMaxDepth = 64;

class ObjectReader {
 public:
  explicit ObjectReader(const Pickle& pickle)
      : pickle_(pickle), budget_(kFreeBytes + kTimesPickle * pickle.bytes.size()) {}

  void visit(PickleId id, const std::string& name, int depth) {
    const PickleNode& node = pickle_.node(id);
    if (depth > kMaxDepth) {
      pickle_.fail(node.at, message("containers are nested more than ", kMaxDepth,
                                    " deep, or contain themselves"));
    }
    spend(node, name.size() + 1);
    switch (node.kind) {
      case PickleKind::kDict:
        return visit_dict(node, name, depth);
      case PickleKind::kList:
        return visit_list(node, name, depth);
      case PickleKind::kObject:
        return visit(node.first(), name, depth + 1);
      case PickleKind::kCall:
        return add_tensor(node, name);
      case PickleKind::kPersistent:
        pickle_.fail(node.at, "'" + excerpt(name) + "' is a storage, expected a tensor");
      default:
        add_value(node, name, plain(node));
    }
  }

  TorchObjects objects() && { return std::move(objects_); }

 private:
  // What is listed is a small multiple of the pickle, however often its memo repeats something.
  static constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 20, kTimesPickle = 32;

  void spend(const PickleNode& node, std::uint64_t bytes) {
    if (bytes > budget_) {
      pickle_.fail(node.at,
                   "objects that contain others several times make up too many, "
                   "expected each once");
    }
    budget_ -= bytes;
  }

  std::string joined(const std::string& name, std::string_view key) const {
    return name.empty() ? std::string(key) : name + "." + std::string(key);
  }

  std::string key_of(const PickleNode& key) const {
    if (key.kind == PickleKind::kString) return std::string(pickle_.text(key));
    if (key.kind == PickleKind::kInt) return std::to_string(key.integer());
    pickle_.fail(key.at, "a dictionary has a key that is no string and no integer");
  }

  void visit_dict(const PickleNode& node, const std::string& name, int depth) {
    PickleId key = kNoNode;
    pickle_.each_item(node, [&](PickleId id) {
      if (key == kNoNode) {
        key = id;
      } else {
        visit(id, joined(name, key_of(pickle_.node(key))), depth + 1);
        key = kNoNode;
      }
      return true;
    });
  }

  void visit_list(const PickleNode& node, const std::string& name, int depth) {
    if (const std::optional<PlainValue> values = plain_list(node)) {
      return add_value(node, name, *values);
    }
    std::size_t i = 0;
    pickle_.each_item(node, [&](PickleId id) {
      visit(id, joined(name, std::to_string(i++)), depth + 1);
      return true;
    });
  }

  // As one value where all are integers, all are numbers, or all are strings.
  std::optional<PlainValue> plain_list(const PickleNode& list) {
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    std::vector<std::string> texts;
    bool all_integers = true, all_numbers = true, all_texts = true;
    pickle_.each_item(list, [&](PickleId id) {
      const PickleNode& node = pickle_.node(id);
      all_integers &= node.kind == PickleKind::kInt;
      all_numbers &= node.kind == PickleKind::kInt || node.kind == PickleKind::kFloat;
      all_texts &= node.kind == PickleKind::kString;
      if (all_integers) integers.push_back(node.integer());
      if (all_numbers) {
        reals.push_back(node.kind == PickleKind::kInt ? static_cast<double>(node.integer())
                                                      : node.real());
      }
      if (all_texts) texts.push_back(text_of(node));
      spend(node, sizeof(double) + (all_texts ? sizeof(std::string) + texts.back().size() : 0));
      return all_numbers || all_texts;
    });
    if (all_integers) return integers;
    if (all_numbers) return reals;
    if (all_texts) return texts;
    return std::nullopt;
  }

  std::string text_of(const PickleNode& node) const { return std::string(pickle_.text(node)); }

  PlainValue plain(const PickleNode& node) {
    switch (node.kind) {
      case PickleKind::kBool:
        return node.integer() != 0;
      case PickleKind::kInt:
        return node.integer();
      case PickleKind::kFloat:
        return node.real();
      case PickleKind::kString:
      case PickleKind::kBytes:
        spend(node, node.second());
        return text_of(node);
      case PickleKind::kBigInt:
        return hexadecimal(node);
      case PickleKind::kName:
        if (pickle_.name(node).role == NameRole::kDtype) {
          return "torch." + std::string(pickle_.name(node).dtype);
        }
        pickle_.fail(node.at, "a function or a class stands for a value, expected a value");
      default:
        return std::monostate();
    }
  }

  // Such as a seed; no type of ours holds it.
  std::string hexadecimal(const PickleNode& node) {
    constexpr const char* kHex = "0123456789abcdef";
    spend(node, 2 * std::uint64_t{node.second()});
    std::string text;
    for (const char c : pickle_.text(node)) {
      text.insert(text.end(), {kHex[c & 15], kHex[(c >> 4) & 15]});
    }
    std::reverse(text.begin(), text.end());
    return "0x" + text;
  }

  void add_value(const PickleNode& node, const std::string& name, PlainValue value) {
    check_name(node, name);
    spend(node, sizeof(NamedValue) + name.size());
    objects_.values.push_back({name, std::move(value)});
  }

  void add_tensor(const PickleNode& node, const std::string& name) {
    TorchTensor tensor = torch_tensor_of(pickle_, node);
    // A tensor that is saved alone has no name.
    tensor.info.name = name.empty() ? "tensor" : name;
    check_name(node, tensor.info.name);
    spend(node, sizeof tensor + name.size() + 16 * tensor.info.shape.size());
    objects_.tensors.push_back(std::move(tensor));
  }

  void check_name(const PickleNode& node, const std::string& name) {
    if (!is_printable_utf8(name)) {
      pickle_.fail(node.at, "the name '" + excerpt(name) +
                                "' is not UTF-8 or holds a control character, expected neither");
    }
  }

  const Pickle& pickle_;
  std::uint64_t budget_;
  TorchObjects objects_;
};

// {"a": {"b": 1}, "a.b": 2} has two.
void require_unequal_names(const Pickle& pickle, const TorchObjects& objects) {
  std::vector<std::string_view> names;
  for (const TorchTensor& tensor : objects.tensors) names.push_back(tensor.info.name);
  for (const NamedValue& value : objects.values) names.push_back(value.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  pickle.fail(0, "two values are named '" + excerpt(*twice) + "', expected one");
}

}  // namespace

TorchObjects torch_objects(const Pickle& pickle, const std::string& prefix) {
  ObjectReader reader(pickle);
  reader.visit(pickle.root, prefix, 0);
  TorchObjects objects = std::move(reader).objects();
  require_unequal_names(pickle, objects);
  return objects;
}

}  // namespace openrnn::formats
