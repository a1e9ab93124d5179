#include "formats/torch/tensor_args.h"

#include "base/message.h"
#include "formats/tensors/contents.h"

namespace openrnn::formats {

namespace {

// PyTorch's own limit of what most operations take.
constexpr std::size_t kMaxRank = 64;
constexpr int kMaxParameters = 8;

const PickleNode& item(const Pickle& pickle, const PickleNode& call,
                       const std::vector<PickleId>& arguments, std::size_t i, PickleKind kind,
                       const char* what) {
  if (i < arguments.size() && pickle.node(arguments[i]).kind == kind) {
    return pickle.node(arguments[i]);
  }
  pickle.fail(call.at, message("a tensor has no ", what, " as argument ", i, ", expected one"));
}

std::uint64_t size_item(const Pickle& pickle, const PickleNode& call,
                        const std::vector<PickleId>& arguments, std::size_t i, const char* what) {
  const PickleNode& number = item(pickle, call, arguments, i, PickleKind::kInt, what);
  if (number.integer() < 0) {
    pickle.fail(call.at,
                message("a tensor has ", what, " ", number.integer(), ", expected 0 or more"));
  }
  return static_cast<std::uint64_t>(number.integer());
}

Shape sizes_of(const Pickle& pickle, const PickleNode& call, const std::vector<PickleId>& arguments,
               std::size_t i, const char* what) {
  const PickleNode& list = item(pickle, call, arguments, i, PickleKind::kList, what);
  const std::vector<PickleId> items = pickle.items(list, kMaxRank + 1);
  if (items.size() > kMaxRank) {
    pickle.fail(call.at, message("a tensor has more than ", kMaxRank, " dimensions"));
  }
  Shape sizes;
  for (std::size_t d = 0; d < items.size(); ++d) {
    sizes.push_back(static_cast<std::int64_t>(size_item(pickle, call, items, d, what)));
  }
  return sizes;
}

std::uint64_t product_of(const Pickle& pickle, const PickleNode& call, std::uint64_t a,
                         std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    pickle.fail(call.at, message("a tensor has ", a, " elements of ", b,
                                 " bytes, expected fewer than 2^64 bytes"));
  }
  return product;
}

// ('storage', class, key, device, elements), and in old files a part of it: (key, first, elements).
TorchStorage storage_of(const Pickle& pickle, const PickleNode& call, const PickleNode& persistent,
                        TorchName* type) {
  const PickleNode& description = pickle.node(persistent.first());
  if (description.kind != PickleKind::kList) {
    pickle.fail(persistent.at, "a storage is described by no tuple, expected one");
  }
  const std::vector<PickleId> items = pickle.items(description, 6);
  const PickleNode& tag = item(pickle, call, items, 0, PickleKind::kString, "'storage'");
  *type = pickle.name(item(pickle, call, items, 1, PickleKind::kName, "class of storages"));
  if (type->role == NameRole::kUntypedStorage) *type = {type->role, "uint8", 1};
  if (pickle.text(tag) != "storage" ||
      (type->role != NameRole::kStorage && type->role != NameRole::kUntypedStorage)) {
    pickle.fail(persistent.at, "this is no storage, expected one");
  }
  TorchStorage storage;
  storage.at = persistent.at;
  storage.element_bytes = type->element_bytes;
  storage.key = pickle.text(item(pickle, call, items, 2, PickleKind::kString, "key"));
  storage.bytes = product_of(pickle, call, size_item(pickle, call, items, 4, "number of elements"),
                             type->element_bytes);
  if (items.size() > 5 && pickle.node(items[5]).kind == PickleKind::kList) {
    const std::vector<PickleId> part = pickle.items(pickle.node(items[5]), 3);
    storage.before = product_of(pickle, call, size_item(pickle, call, part, 1, "first element"),
                                type->element_bytes);
    storage.bytes =
        product_of(pickle, call, size_item(pickle, call, part, 2, "elements"), type->element_bytes);
  }
  return storage;
}

bool is_dense(const Shape& shape, const Shape& strides) {
  std::int64_t dense = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != dense) return false;
    dense *= shape[d];
  }
  return true;
}

// Everything that a reader of the elements relies on.
void check_extent(const Pickle& pickle, const PickleNode& call, std::uint64_t first,
                  TorchTensor* tensor) {
  const Shape& shape = tensor->info.shape;
  const std::optional<std::uint64_t> elements = element_count(shape);
  if (!elements || tensor->strides.size() != shape.size()) {
    pickle.fail(call.at, "a tensor has an impossible shape, or not as many strides");
  }
  tensor->info.bytes = product_of(pickle, call, *elements, tensor->element_bytes);
  if (*elements == 0) {
    tensor->strides.clear();
    return;
  }
  std::uint64_t last = first;
  bool overflow = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::uint64_t way = 0;
    overflow |= __builtin_mul_overflow(static_cast<std::uint64_t>(shape[d] - 1),
                                       static_cast<std::uint64_t>(tensor->strides[d]), &way);
    overflow |= __builtin_add_overflow(last, way, &last);
  }
  const std::uint64_t stored = tensor->storage.bytes / tensor->element_bytes;
  if (overflow || last >= stored) {
    pickle.fail(call.at, message("a tensor of shape ", to_string(shape), " and strides ",
                                 to_string(tensor->strides), " begins at element ", first,
                                 ", expected it inside its storage of ", stored));
  }
  tensor->first = first * tensor->element_bytes;
  if (is_dense(shape, tensor->strides)) tensor->strides.clear();
}

// A lazy negation or conjugation would have to be computed.
void refuse_metadata(const Pickle& pickle, const PickleNode& call,
                     const std::vector<PickleId>& arguments, std::size_t i) {
  if (i >= arguments.size()) return;
  const PickleNode& metadata = pickle.node(arguments[i]);
  if (metadata.kind == PickleKind::kNone) return;
  if (metadata.kind == PickleKind::kDict && pickle.items(metadata, 1).empty()) return;
  throw UnsupportedError(message("[", pickle.path, " @ ", pickle.offset + call.at,
                                 "] a tensor is stored as a lazy negation or conjugation, "
                                 "expected its own elements"));
}

}  // namespace

TorchTensor torch_tensor_of(const Pickle& pickle, const PickleNode& given) {
  const PickleNode* call = &given;
  std::vector<PickleId> arguments;
  TorchName name;
  // A parameter is made of a tensor; one of a parameter of a parameter is nobody's.
  for (int depth = 0;; ++depth) {
    arguments = pickle.items(pickle.node(call->second()), 9);
    name = pickle.name(pickle.node(call->first()));
    if (name.role != NameRole::kParameter) break;
    if (depth == kMaxParameters) pickle.fail(call->at, "a parameter is made of itself");
    call = &item(pickle, *call, arguments, 0, PickleKind::kCall, "tensor");
  }
  TorchTensor tensor;
  TorchName type;
  tensor.storage = storage_of(
      pickle, *call, item(pickle, *call, arguments, 0, PickleKind::kPersistent, "storage"), &type);
  const bool of_dtype = name.role == NameRole::kTensorOfDtype;
  if (of_dtype) {
    type = pickle.name(item(pickle, *call, arguments, 6, PickleKind::kName, "dtype"));
    if (type.role != NameRole::kDtype) pickle.fail(call->at, "a tensor has no dtype, expected one");
  }
  refuse_metadata(pickle, *call, arguments, of_dtype ? 7 : 6);
  tensor.info.dtype = type.dtype;
  tensor.element_bytes = type.element_bytes;
  tensor.info.shape = sizes_of(pickle, *call, arguments, 2, "size");
  tensor.strides = sizes_of(pickle, *call, arguments, 3, "stride");
  check_extent(pickle, *call, size_item(pickle, *call, arguments, 1, "first element"), &tensor);
  return tensor;
}

}  // namespace openrnn::formats
