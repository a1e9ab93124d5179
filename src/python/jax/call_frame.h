// What XLA hands to a typed FFI handler: the part of its C ABI that the handlers here read, written
// from the facts of that ABI (major version 0; the same in every minor one from 1 on). Structs grow
// at their ends, and each but plain spans begins with its size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openrnn::python::jax {

/// Versions of the ABI that these declarations are of.
inline constexpr int kMajorVersion = 0, kLeastMinorVersion = 1;

enum class ExtensionType : int { kMetadata = 1 };
struct Extension {
  std::size_t struct_size;
  ExtensionType type;
  Extension* next;
};

struct ApiVersion {
  std::size_t struct_size;
  Extension* extensions;
  int major;
  int minor;
};

/// The answer to a query, of a handler that says what it was written for.
struct Metadata {
  std::size_t struct_size;
  ApiVersion version;
  std::uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

enum class ErrorCode : int {
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
};
struct Error;
struct ErrorCreateArgs {
  std::size_t struct_size;
  Extension* extensions;
  const char* message;
  ErrorCode code;
};

/// The runtime's functions; there are more behind, which nothing here calls.
struct Api {
  std::size_t struct_size;
  Extension* extensions;
  ApiVersion version;
  const void* internal;
  Error* (*create_error)(ErrorCreateArgs* args);
};

/// XLA's numbers of the element types that handlers here take.
enum class ElementType : int {
  kBool = 1,
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kUInt32 = 8,
  kFloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kBfloat16 = 16,
};

struct Buffer {
  std::size_t struct_size;
  Extension* extensions;
  ElementType type;
  void* data;
  std::int64_t rank;
  const std::int64_t* dims;
};

enum class ValueType : int { kBuffer = 1 };
enum class AttributeType : int { kArray = 1, kDictionary = 2, kScalar = 3, kString = 4 };

struct Span {
  const char* data;
  std::size_t size;
};
struct Scalar {
  ElementType type;
  const void* value;
};

/// Operands, or results.
struct Values {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  const ValueType* types;
  void* const* values;
};
struct Attributes {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  const AttributeType* types;
  Span* const* names;
  void* const* values;
};

enum class Stage : int { kInstantiate = 0, kPrepare = 1, kInitialize = 2, kExecute = 3 };

struct CallFrame {
  std::size_t struct_size;
  Extension* extensions;
  const Api* api;
  void* context;
  Stage stage;
  Values operands;
  Values results;
  Attributes attributes;
};

/// Returns null, or an error of the runtime's.
using Handler = Error*(CallFrame*);

}  // namespace openrnn::python::jax
