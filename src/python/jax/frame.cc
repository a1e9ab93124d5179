#include "python/jax/frame.h"

#include <new>

#include "base/message.h"

namespace openrnn::python::jax {
namespace {

std::string name_of(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return "bool";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kUInt8:
      return "uint8";
    case ElementType::kUInt32:
      return "uint32";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
    case ElementType::kBfloat16:
      return "bfloat16";
  }
  return "XLA's type " + std::to_string(static_cast<int>(type));
}

std::string text_of(ElementType type, std::span<const std::int64_t> dims) {
  return name_of(type) + " " + to_string(Shape(dims.begin(), dims.end()));
}

std::span<const std::int64_t> dims_of(const Buffer& buffer) {
  return {buffer.dims, static_cast<std::size_t>(buffer.rank)};
}

// Null for a place or a kind that is not there.
const Buffer* buffer_at(const Values& values, std::int64_t place) {
  if (place < 0 || place >= values.size || values.types[place] != ValueType::kBuffer) {
    return nullptr;
  }
  const auto* const buffer = static_cast<const Buffer*>(values.values[place]);
  return buffer->struct_size >= sizeof(Buffer) ? buffer : nullptr;
}

// The runtime asks what a handler was written for: any version whose structs it knows is the
// runtime's own, since nothing that is read here differs between them.
bool answers_metadata(const CallFrame& frame) {
  for (Extension* each = frame.extensions; each; each = each->next) {
    if (each->type != ExtensionType::kMetadata) continue;
    Metadata& answer = *reinterpret_cast<MetadataExtension*>(each)->metadata;
    answer.version.major = kMajorVersion;
    const bool known = frame.api && frame.api->version.major == kMajorVersion;
    answer.version.minor = known ? frame.api->version.minor : kLeastMinorVersion;
    answer.traits = 0;
    return true;
  }
  return false;
}

Error* make_error(const CallFrame& frame, ErrorCode code, const char* text) {
  ErrorCreateArgs args{sizeof(ErrorCreateArgs), nullptr, text, code};
  return frame.api->create_error(&args);
}

}  // namespace

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return ElementType::kFloat16;
    case DType::kBfloat16:
      return ElementType::kBfloat16;
    case DType::kFloat64:
      return ElementType::kFloat64;
    default:
      return ElementType::kFloat32;
  }
}

Frame::Frame(std::string_view call, const CallFrame& frame) : call_(call), frame_(frame) {
  const ApiVersion& version = frame.api->version;
  if (version.major != kMajorVersion || version.minor < kLeastMinorVersion) {
    throw EngineError(message("[", call, "] XLA's FFI is version ", version.major, ".",
                              version.minor, ", expected ", kMajorVersion, ".", kLeastMinorVersion,
                              " or a later one with the same first number: another jaxlib"));
  }
  const bool whole = frame.struct_size >= sizeof(CallFrame) &&
                     frame.operands.struct_size >= sizeof(Values) &&
                     frame.results.struct_size >= sizeof(Values) &&
                     frame.attributes.struct_size >= sizeof(Attributes);
  if (!whole) {
    throw EngineError(message("[", call, "] XLA's call frame has ", frame.struct_size,
                              " bytes, expected ", sizeof(CallFrame), " or more: another jaxlib"));
  }
}

void Frame::fail(const std::string& what) const {
  throw ArgumentError(message("[", call_, "] ", what));
}

void Frame::expect_counts(std::int64_t operands, std::int64_t results) const {
  if (frame_.operands.size == operands && frame_.results.size == results) return;
  fail(message("there are ", frame_.operands.size, " operands and ", frame_.results.size,
               " results, expected ", operands, " and ", results));
}

namespace {

std::span<const std::int64_t> dims_at(const Frame& frame, const Buffer* buffer,
                                      std::string_view name, std::int64_t rank) {
  if (buffer && buffer->rank == rank) return dims_of(*buffer);
  const std::string given = buffer ? text_of(buffer->type, dims_of(*buffer)) : "no buffer";
  throw ArgumentError(message("[", frame.call(), "] ", name, " is ", given, ", expected ", rank,
                              rank == 1 ? " dimension" : " dimensions"));
}

void* memory_of(const Frame& frame, const Buffer* buffer, std::string_view name, ElementType type,
                const Shape& shape) {
  if (!buffer) {
    throw ArgumentError(message("[", frame.call(), "] ", name, " is no buffer, expected one"));
  }
  const auto dims = dims_of(*buffer);
  if (buffer->type != type || !std::equal(dims.begin(), dims.end(), shape.begin(), shape.end())) {
    throw ArgumentError(message("[", frame.call(), "] ", name, " is ", text_of(buffer->type, dims),
                                ", expected ", text_of(type, shape)));
  }
  return buffer->data;
}

}  // namespace

std::span<const std::int64_t> Frame::dims(std::int64_t place, std::string_view name,
                                          std::int64_t rank) const {
  return dims_at(*this, buffer_at(frame_.operands, place), name, rank);
}

std::span<const std::int64_t> Frame::result_dims(std::int64_t place, std::string_view name,
                                                 std::int64_t rank) const {
  return dims_at(*this, buffer_at(frame_.results, place), name, rank);
}

const void* Frame::operand(std::int64_t place, std::string_view name, ElementType type,
                           const Shape& shape) const {
  return memory_of(*this, buffer_at(frame_.operands, place), name, type, shape);
}

void* Frame::result(std::int64_t place, std::string_view name, ElementType type,
                    const Shape& shape) const {
  return memory_of(*this, buffer_at(frame_.results, place), name, type, shape);
}

std::int64_t Frame::size(std::int64_t place) const {
  const Buffer* const buffer = buffer_at(frame_.operands, place);
  std::int64_t size = buffer ? 1 : 0;
  for (std::int64_t i = 0; buffer && i < buffer->rank; ++i) size *= buffer->dims[i];
  return size;
}

const void* Frame::attribute(std::string_view name, AttributeType type) const {
  const Attributes& all = frame_.attributes;
  for (std::int64_t i = 0; i < all.size; ++i) {
    const Span& found = *all.names[i];
    if (std::string_view(found.data, found.size) != name) continue;
    if (all.types[i] == type) return all.values[i];
    fail(message("attribute ", name, " is of kind ", static_cast<int>(all.types[i]), ", expected ",
                 static_cast<int>(type)));
  }
  fail(message("attribute ", name, " is missing, expected it"));
}

std::string_view Frame::text(std::string_view name) const {
  const auto& span = *static_cast<const Span*>(attribute(name, AttributeType::kString));
  return {span.data, span.size};
}

const void* Frame::scalar(std::string_view name, ElementType type) const {
  const auto& found = *static_cast<const Scalar*>(attribute(name, AttributeType::kScalar));
  if (found.type != type) {
    fail(message("attribute ", name, " is ", name_of(found.type), ", expected ", name_of(type)));
  }
  return found.value;
}

bool Frame::flag(std::string_view name) const {
  return *static_cast<const bool*>(scalar(name, ElementType::kBool));
}

std::int64_t Frame::number(std::string_view name) const {
  return *static_cast<const std::int64_t*>(scalar(name, ElementType::kInt64));
}

Error* handle(std::string_view call, CallFrame* frame, void (*execute)(const Frame&)) noexcept {
  if (answers_metadata(*frame)) return nullptr;
  try {
    const Frame checked(call, *frame);
    if (checked.stage() == Stage::kExecute) execute(checked);
    return nullptr;
  } catch (const UnsupportedError& error) {
    return make_error(*frame, ErrorCode::kUnimplemented, error.what());
  } catch (const ArgumentError& error) {
    return make_error(*frame, ErrorCode::kInvalidArgument, error.what());
  } catch (const std::bad_alloc& error) {
    return make_error(*frame, ErrorCode::kResourceExhausted, error.what());
  } catch (const std::exception& error) {
    return make_error(*frame, ErrorCode::kInternal, error.what());
  }
}

}  // namespace openrnn::python::jax
