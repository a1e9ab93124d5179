// TensorProto, which holds the elements of constants in graphs and of checkpoints of version 1.
#pragma once

#include <string>
#include <string_view>

#include "formats/file/byte_source.h"
#include "openrnn/base.h"

namespace openrnn::formats {

struct TfTensorProto {
  int dtype = 0;
  Shape shape;
  /// Elements as bytes, a part of what was decoded; empty where they are in `values`.
  std::string_view content;
  /// Elements of the lists of numbers, as bytes of `dtype`.
  std::string values;
};

/// Checks the encoding alone; false if the bytes are no such message. `dtype`: that of the elements
/// where the message does not say it; 0: it must. Of strings no elements are decoded.
bool decode_tensor_proto(std::string_view bytes, int dtype, TfTensorProto* tensor);

/// Elements that were decoded.
class OwnedSource : public ByteSource {
 public:
  OwnedSource(std::string path, std::string bytes)
      : bytes_(std::move(bytes)), source_(std::move(path), bytes_) {}
  const std::string& path() const noexcept override { return source_.path(); }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read_at(std::uint64_t offset, void* out, std::size_t count) const override {
    source_.read_at(offset, out, count);
  }
  std::string_view mapped() const override { return bytes_; }

 private:
  std::string bytes_;
  MemorySource source_;
};

}  // namespace openrnn::formats
