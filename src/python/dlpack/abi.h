// The structs of DLPack's C interface, versions 0.x and 1.x: what lies in a capsule.
#pragma once

#include <cstdint>

namespace openrnn::python::dlpack {

constexpr std::int32_t kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13;
constexpr std::uint8_t kInt = 0, kUint = 1, kFloat = 2, kBool = 6;
constexpr std::uint64_t kReadOnly = 1, kIsCopied = 2;

struct Device {
  std::int32_t type;
  std::int32_t ordinal;
};

struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

/// In a capsule 'dltensor', 'used_dltensor' once somebody took it.
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};

/// In a capsule 'dltensor_versioned', 'used_dltensor_versioned' once somebody took it.
struct ManagedVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace openrnn::python::dlpack
