// A table whose first entry lists the tensors, SavedTensorSliceMeta, and in which every other one
// is a slice of one of them, SavedSlice.
#include <algorithm>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <unordered_map>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/bundle/bundle.h"
#include "formats/file/owned_source.h"
#include "formats/proto_fields.h"
#include "formats/table/table.h"
#include "formats/tensorflow/tensor_proto.h"
#include "formats/tensorflow/tensorflow.h"
#include "formats/tf_dtype.h"

namespace openrnn::formats {

namespace {

using protozero::pbf_reader;

// Slices are compared in pairs.
constexpr std::size_t kMostV1Slices = 4096, kMostV1Rank = 254;

std::string_view bytes_of(pbf_reader* in) {
  const protozero::data_view view = in->get_view();
  return {view.data(), view.size()};
}

struct V1Tensor {
  TensorInfo info;
  int dtype = 0;
  std::vector<TensorSlice> slices;
  /// The elements of each slice that has been found.
  std::map<TensorSlice, std::string> parts;
};

V1Tensor decode_v1_tensor(std::string_view bytes, bool* good) {
  V1Tensor tensor;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag_and_type() == message_field(1)) {
      tensor.info.name = bytes_of(&in);
    } else if (in.tag_and_type() == message_field(2)) {
      tensor.info.shape = decode_shape(bytes_of(&in), good);
    } else if (in.tag_and_type() == varint_field(3)) {
      tensor.dtype = in.get_enum();
    } else if (in.tag_and_type() == message_field(4)) {
      tensor.slices.push_back(decode_slice(bytes_of(&in)));
    } else {
      in.skip();
    }
  }
  return tensor;
}

class V1Reader {
 public:
  explicit V1Reader(const ByteSource& file) : file_(file) {}

  void take(std::string_view key, std::string_view value, std::uint64_t offset) try {
    if (!key.empty() && !listed_) fail_without_list(offset);
    pbf_reader in(value.data(), value.size());
    while (in.next()) {
      if (key.empty() && in.tag_and_type() == message_field(1)) {
        take_list(bytes_of(&in), offset);
      } else if (!key.empty() && in.tag_and_type() == message_field(2)) {
        take_slice(key, bytes_of(&in), offset);
      } else {
        in.skip();
      }
    }
    if (!listed_) fail_without_list(offset);
  } catch (const protozero::exception&) {
    fail(offset, "the entry '" + excerpt(key) + "' is damaged");
  }

  FileContents contents() {
    if (!listed_) fail_without_list(0);
    FileContents contents;
    contents.kind = FileKind::kTfCheckpointV1;
    for (V1Tensor& tensor : tensors_) {
      auto source = std::make_unique<OwnedSource>(file_.path(), joined(&tensor));
      tensor.info.bytes = source->size();
      contents.places.push_back({.extent = contents.extents.size()});
      contents.extents.push_back({source.get(), 0, tensor.info.bytes, std::nullopt});
      contents.tensors.push_back(std::move(tensor.info));
      contents.sources.push_back(std::move(source));
    }
    return contents;
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const {
    throw FormatError(file_.path(), offset, what);
  }

  [[noreturn]] void fail_without_list(std::uint64_t offset) const {
    fail(offset, "its first entry is no list of tensors, expected a checkpoint of version 1");
  }

  void take_list(std::string_view list, std::uint64_t offset) {
    listed_ = true;
    bool good = true;
    pbf_reader in(list.data(), list.size());
    while (in.next()) {
      if (in.tag_and_type() != message_field(1)) {
        in.skip();
        continue;
      }
      V1Tensor tensor = decode_v1_tensor(bytes_of(&in), &good);
      const std::string named = "tensor '" + excerpt(tensor.info.name) + "'";
      if (!is_printable_utf8(tensor.info.name) || tensor.info.name.empty()) {
        fail(offset, named + " has a control character or no name, expected a name");
      }
      tensor.info.dtype = tf_dtype_name(tensor.dtype);
      tensor.info.sliced = tensor.slices.size() > 1;
      if (!good || !element_count(tensor.info.shape) || tensor.info.shape.size() > kMostV1Rank) {
        fail(offset,
             message(named, " has impossible shape ", excerpt(to_string(tensor.info.shape))));
      }
      if (!numbers_.emplace(tensor.info.name, tensors_.size()).second) {
        fail(offset, named + " is there twice, expected once");
      }
      tensors_.push_back(std::move(tensor));
    }
  }

  void take_slice(std::string_view key, std::string_view message_bytes, std::uint64_t offset) {
    std::string_view name, data;
    TensorSlice slice;
    pbf_reader in(message_bytes.data(), message_bytes.size());
    while (in.next()) {
      if (in.tag_and_type() == message_field(1)) {
        name = bytes_of(&in);
      } else if (in.tag_and_type() == message_field(2)) {
        slice = decode_slice(bytes_of(&in));
      } else if (in.tag_and_type() == message_field(3)) {
        data = bytes_of(&in);
      } else {
        in.skip();
      }
    }
    const auto found = numbers_.find(std::string(name));
    if (found == numbers_.end() || slice_key(name, slice) != key) {
      fail(offset, "a slice of '" + excerpt(name) + "' has another key, or is of no listed tensor");
    }
    V1Tensor& tensor = tensors_[found->second];
    TfTensorProto proto;
    if (!decode_tensor_proto(data, tensor.dtype, &proto)) {
      fail(offset, "the elements of '" + excerpt(name) + "' are damaged");
    }
    std::string bytes =
        proto.content.empty() ? std::move(proto.values) : std::string(proto.content);
    if (!tensor.parts.emplace(std::move(slice), std::move(bytes)).second) {
      fail(offset, "a slice of '" + excerpt(name) + "' is there twice, expected once");
    }
  }

  // The elements of a whole tensor, for which every byte has been read; nothing of strings.
  std::string joined(V1Tensor* tensor) {
    const TensorInfo& info = tensor->info;
    const std::size_t width = tf_dtype_size(tensor->dtype);
    if (width == 0) return {};
    const std::string named = "tensor '" + excerpt(info.name) + "'";
    if (tensor->slices.size() > kMostV1Slices) {
      fail(0, message(named, " has ", tensor->slices.size(), " slices, expected at most ",
                      kMostV1Slices));
    }
    if (std::ranges::any_of(
            tensor->slices,
            [&](const TensorSlice& slice) { return slice.size() != info.shape.size(); }) ||
        !slices_cover(info.shape, tensor->slices)) {
      fail(0, named + " has slices that overlap, leave gaps or lie outside");
    }
    for (const TensorSlice& slice : tensor->slices) {
      const auto found = tensor->parts.find(slice);
      const auto elements = static_cast<std::uint64_t>(shape_size(slice_shape(info.shape, slice)));
      const std::uint64_t bytes = found == tensor->parts.end() ? 0 : found->second.size();
      if (bytes / width == elements && bytes % width == 0 && found != tensor->parts.end()) continue;
      fail(0, message("a slice of ", named, " has ", bytes, " bytes, expected ", elements,
                      " elements of ", width));
    }
    if (tensor->slices.size() == 1) return std::move(tensor->parts.at(tensor->slices[0]));
    std::string whole(static_cast<std::size_t>(shape_size(info.shape)) * width, '\0');
    for (const TensorSlice& slice : tensor->slices) {
      place_slice(info.shape, slice, width, tensor->parts.at(slice).data(), whole.data());
    }
    tensor->parts.clear();
    return whole;
  }

  const ByteSource& file_;
  std::vector<V1Tensor> tensors_;
  std::unordered_map<std::string, std::size_t> numbers_;
  bool listed_ = false;
};

}  // namespace

bool ends_as_table(const ByteSource& file) {
  if (file.size() < kTableFooterBytes) return false;
  std::uint64_t magic = 0;
  file.read_at(file.size() - sizeof magic, &magic, sizeof magic);
  return magic == kTableMagic;
}

FileContents read_tf_v1(std::unique_ptr<ByteSource> file, bool verify_checksums) {
  V1Reader reader(*file);
  read_table(*file, verify_checksums,
             [&](std::string_view key, std::string_view value, std::uint64_t offset) {
               reader.take(key, value, offset);
             });
  FileContents contents = reader.contents();
  contents.sources.push_back(std::move(file));
  return contents;
}

}  // namespace openrnn::formats
