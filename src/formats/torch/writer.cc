// Tensors and plain values as torch.save writes them.
#include <bit>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/coding.h"
#include "formats/tensors/contents.h"
#include "formats/torch/names.h"
#include "formats/torch/objects_writer.h"
#include "formats/zip/zip_writer.h"

namespace openrnn {

namespace formats {

namespace {

// PyTorch's own.
constexpr std::uint64_t kStorageAlignment = 64;

/// One pickle of protocol 2, and the tensors that it names in their order.
class PickleWriter {
 public:
  void put_object(const TorchObject& object) {
    switch (object.kind) {
      case TorchObject::Kind::kValue:
        return std::visit([this](const auto& held) { put(held); }, object.value);
      case TorchObject::Kind::kTensor:
        put_tensor(object.tensor, message(tensors_.size()));
        return tensors_.push_back(object.tensor);
      case TorchObject::Kind::kList:
        out_ += "](";
        for (const auto& [name, item] : object.items) put_object(item);
        out_ += 'e';
        return;
      case TorchObject::Kind::kOrdered:
        put_empty_ordered();
        return put_items(object);
      case TorchObject::Kind::kDict:
      case TorchObject::Kind::kNumbered:
        out_ += '}';
        return put_items(object);
    }
  }
  std::string finish() { return "\x80\x02" + out_ + "."; }
  const std::vector<ConstArrayView>& tensors() const { return tensors_; }

 private:
  void put(std::monostate) { out_ += 'N'; }
  void put(bool value) { out_ += value ? '\x88' : '\x89'; }
  void put(std::int64_t value) {
    out_ += "\x8a\x08";  // LONG1 of 8 bytes
    put_fixed(&out_, value);
  }
  // BINFLOAT is the one number with its first byte first.
  void put(double value) {
    out_ += 'G';
    put_fixed(&out_, __builtin_bswap64(std::bit_cast<std::uint64_t>(value)));
  }
  // What is not UTF-8 was bytes. Pickles of protocol 2 have them as an encoding of Latin-1.
  void put(const std::string& value) {
    if (is_valid_utf8(value)) return put_text(value);
    put_name("_codecs", "encode");
    std::string text;
    for (const char c : value) text += utf8_of(static_cast<unsigned char>(c));
    out_ += '(';
    put_text(text);
    put_text("latin1");
    out_ += "tR";
  }
  template <class T>
  void put(const std::vector<T>& values) {
    out_ += "](";
    for (const T& value : values) put(value);
    out_ += 'e';
  }

  void put_items(const TorchObject& object) {
    out_ += '(';
    for (const auto& [name, item] : object.items) {
      if (object.kind == TorchObject::Kind::kNumbered) {
        put(static_cast<std::int64_t>(std::stoll(name)));
      } else {
        put_text(name);
      }
      put_object(item);
    }
    out_ += 'u';
  }
  void put_text(std::string_view text) {
    out_ += 'X';
    put_fixed(&out_, static_cast<std::uint32_t>(text.size()));
    out_ += text;
  }
  void put_name(std::string_view module, std::string_view name) {
    out_.append("c").append(module).append("\n").append(name).append("\n");
  }
  void put_integers(const Shape& values) {
    out_ += '(';
    for (const std::int64_t value : values) put(value);
    out_ += 't';
  }
  void put_empty_ordered() {
    put_name("collections", "OrderedDict");
    out_ += ")R";
  }

  // The call that makes the tensor of storage `key`.
  void put_tensor(const ConstArrayView& values, const std::string& key) {
    put_name("torch._utils", "_rebuild_tensor_v2");
    out_ += "((";
    put_text("storage");
    put_name("torch", storage_class_of(dtype_name(values.dtype)));
    put_text(key);
    put_text("cpu");
    put(values.size());
    out_ += "tQ";
    put(std::int64_t{0});  // the first element
    put_integers(values.shape);
    Shape strides(values.shape.size(), 1);
    // Those of no elements mean nothing, and their product may overflow.
    for (std::size_t d = values.size() ? strides.size() : 0; d-- > 1;) {
      strides[d - 1] = strides[d] * values.shape[d];
    }
    put_integers(strides);
    put(false);  // needs no gradient
    put_empty_ordered();
    out_ += "tR";
  }

  std::string out_;
  std::vector<ConstArrayView> tensors_;
};

void require_storages(std::string_view call, const std::string& name, const TorchObject& object) {
  for (const auto& [key, item] : object.items) require_storages(call, key, item);
  if (object.kind != TorchObject::Kind::kTensor ||
      !storage_class_of(dtype_name(object.tensor.dtype)).empty()) {
    return;
  }
  throw UnsupportedError(message("[", call, "] tensor '", excerpt(name), "' is ",
                                 dtype_name(object.tensor.dtype),
                                 ", expected a dtype that has a storage in PyTorch"));
}

}  // namespace

void write_torch_objects(std::string_view call, const std::string& path, const TorchObject& root) {
  require_storages(call, {}, root);
  PickleWriter pickle;
  pickle.put_object(root);
  replace_file(path, [&](OutputFile& file) {
    ZipWriter archive(&file, kStorageAlignment);
    const auto add = [&](const std::string& name, std::string_view bytes) {
      archive.add("archive/" + name, bytes.data(), bytes.size());
    };
    add("data.pkl", pickle.finish());
    add("byteorder", "little");
    for (std::size_t i = 0; i < pickle.tensors().size(); ++i) {
      const ConstArrayView& values = pickle.tensors()[i];
      add("data/" + message(i), {static_cast<const char*>(values.data), values.size_bytes()});
    }
    add("version", "3\n");
    archive.finish();
  });
}

}  // namespace formats

void write_torch_state_dict(const std::string& path, std::span<const NamedView> tensors) {
  formats::check_named_views("write_torch_state_dict", tensors);
  formats::TorchObject root{.kind = formats::TorchObject::Kind::kOrdered};
  for (const NamedView& tensor : tensors) {
    root.add(tensor.name, formats::TorchObject::of_tensor(tensor.values));
  }
  formats::write_torch_objects("write_torch_state_dict", path, root);
}

}  // namespace openrnn
