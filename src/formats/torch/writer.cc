// A state_dict as torch.save writes it.
#include "base/excerpt.h"
#include "base/message.h"
#include "formats/coding.h"
#include "formats/tensors/contents.h"
#include "formats/torch/names.h"
#include "formats/zip/zip_writer.h"

namespace openrnn {

namespace {

// PyTorch's own.
constexpr std::uint64_t kStorageAlignment = 64;

void put_text(std::string* out, std::string_view text) {
  *out += 'X';
  formats::put_fixed(out, static_cast<std::uint32_t>(text.size()));
  *out += text;
}

void put_integer(std::string* out, std::int64_t value) {
  *out += "\x8a\x08";  // LONG1 of 8 bytes
  formats::put_fixed(out, value);
}

void put_name(std::string* out, std::string_view module, std::string_view name) {
  out->append("c").append(module).append("\n").append(name).append("\n");
}

void put_integers(std::string* out, const Shape& values) {
  *out += '(';
  for (const std::int64_t value : values) put_integer(out, value);
  *out += 't';
}

void put_empty_dict(std::string* out) {
  put_name(out, "collections", "OrderedDict");
  *out += ")R";
}

// The call that makes the tensor of storage `key`.
void put_tensor(std::string* out, const ConstArrayView& values, const std::string& key) {
  put_name(out, "torch._utils", "_rebuild_tensor_v2");
  *out += "((";
  put_text(out, "storage");
  put_name(out, "torch", formats::storage_class_of(dtype_name(values.dtype)));
  put_text(out, key);
  put_text(out, "cpu");
  put_integer(out, values.size());
  *out += "tQ";
  put_integer(out, 0);  // the first element
  put_integers(out, values.shape);
  Shape strides(values.shape.size(), 1);
  // Those of no elements mean nothing, and their product may overflow.
  for (std::size_t d = values.size() ? strides.size() : 0; d-- > 1;) {
    strides[d - 1] = strides[d] * values.shape[d];
  }
  put_integers(out, strides);
  *out += '\x89';  // needs no gradient
  put_empty_dict(out);
  *out += "tR";
}

std::string state_dict_pickle(std::span<const NamedView> tensors) {
  std::string out = "\x80\x02";
  put_empty_dict(&out);
  out += '(';
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    put_text(&out, tensors[i].name);
    put_tensor(&out, tensors[i].values, message(i));
  }
  return out + "u.";
}

}  // namespace

void write_torch_state_dict(const std::string& path, std::span<const NamedView> tensors) {
  formats::check_named_views("write_torch_state_dict", tensors);
  for (const NamedView& tensor : tensors) {
    if (!formats::storage_class_of(dtype_name(tensor.values.dtype)).empty()) continue;
    throw UnsupportedError(message("[write_torch_state_dict] tensor '", excerpt(tensor.name),
                                   "' is ", dtype_name(tensor.values.dtype),
                                   ", expected a dtype that has a storage in PyTorch"));
  }
  formats::replace_file(path, [&](formats::OutputFile& file) {
    formats::ZipWriter archive(&file, kStorageAlignment);
    const auto add = [&](const std::string& name, std::string_view bytes) {
      archive.add("archive/" + name, bytes.data(), bytes.size());
    };
    add("data.pkl", state_dict_pickle(tensors));
    add("byteorder", "little");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const ConstArrayView& values = tensors[i].values;
      add("data/" + message(i), {static_cast<const char*>(values.data), values.size_bytes()});
    }
    add("version", "3\n");
    archive.finish();
  });
}

}  // namespace openrnn
