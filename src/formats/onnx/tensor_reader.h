// One TensorProto, with its elements in any of the places that it may have them.
#pragma once

#include "formats/onnx/onnx_file.h"
#include "formats/onnx/proto_file.h"

namespace openrnn::formats {

struct OnnxType;

class OnnxTensorReader {
 public:
  /// `file` is all of `source`; both outlive this object.
  OnnxTensorReader(const ProtoFile& file, std::shared_ptr<const ByteSource> source,
                   const SourceOpener& open)
      : file_(file), source_(std::move(source)), open_(open) {}

  /// Throws: FormatError, UnsupportedError, IoError.
  OnnxTensor read(std::string_view message);

 private:
  struct Location;
  void take_location(std::string_view message, std::string_view entry, Location* location);
  void take_field(std::string_view message, protozero::pbf_reader* in, OnnxTensor* tensor,
                  Location* location);
  void read_typed(std::string_view message, const Location& location, const OnnxType& type,
                  OnnxTensor* tensor);
  void read_elements(std::string_view message, const Location& location, OnnxTensor* tensor);
  void read_external(std::string_view message, const Location& location, std::uint64_t expected,
                     OnnxTensor* tensor);
  const std::shared_ptr<const ByteSource>& external_file(std::string_view message,
                                                         const std::string& name);

  const ProtoFile& file_;
  std::shared_ptr<const ByteSource> source_;
  const SourceOpener& open_;
  std::map<std::string, std::shared_ptr<const ByteSource>> external_;
};

}  // namespace openrnn::formats
