// The layout of the parameters and their conversions as plain C.

#include "openrnn/params.h"

#include <cstring>
#include <vector>

#include "call.h"
#include "openrnn/saveables.h"
#include "spec.h"

using namespace openrnn;
using openrnn::testapi::call;
using openrnn::testapi::to_spec;

extern "C" {

/// One region of the layout.
struct ApiRegion {
  std::int64_t is_bias, layer, direction, slot, rows, cols, offset;
};

}  // extern "C"

namespace {

void copy_out(const std::vector<Array>& arrays, void* const* out) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].size_bytes() > 0) std::memcpy(out[i], arrays[i].data(), arrays[i].size_bytes());
  }
}

std::vector<ConstArrayView> views(const void* const* in, std::span<const ParamRegion> regions,
                                  DType dtype) {
  std::vector<ConstArrayView> result;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    result.push_back({in[i], dtype, regions[i].shape()});
  }
  return result;
}

}  // namespace

extern "C" {

OPENRNN_API const char* openrnn_test_params_size(const ApiSpec* spec, std::int64_t* size) {
  return call([&] { *size = params_size(to_spec(*spec)); });
}

/// `count` regions at most are written; on return it is the number that there are.
OPENRNN_API const char* openrnn_test_layout(const ApiSpec* spec, ApiRegion* out,
                                            std::int64_t* count) {
  return call([&] {
    const ParamsLayout layout(to_spec(*spec));
    std::int64_t i = 0;
    for (const auto& part : {layout.weights(), layout.biases()}) {
      for (const ParamRegion& r : part) {
        if (i < *count) {
          out[i] = {r.is_bias(), r.layer, r.direction, r.slot, r.rows, r.cols, r.offset};
        }
        ++i;
      }
    }
    *count = i;
  });
}

/// `weights` and `biases`: one pointer for each region, to memory of its size.
OPENRNN_API const char* openrnn_test_to_canonical(const ApiSpec* spec, const void* params,
                                                  std::int64_t size, void* const* weights,
                                                  void* const* biases) {
  return call([&] {
    const ParamsLayout layout(to_spec(*spec));
    const CanonicalParams parts =
        params_to_canonical(layout, {params, layout.spec().dtype, {size}});
    copy_out(parts.weights, weights);
    copy_out(parts.biases, biases);
  });
}

OPENRNN_API const char* openrnn_test_to_params(const ApiSpec* spec, const void* const* weights,
                                               const void* const* biases, void* params) {
  return call([&] {
    const ParamsLayout layout(to_spec(*spec));
    const DType dtype = layout.spec().dtype;
    const Array buffer = canonical_to_params(layout, views(weights, layout.weights(), dtype),
                                             views(biases, layout.biases(), dtype));
    std::memcpy(params, buffer.data(), buffer.size_bytes());
  });
}

/// One line a tensor: its name and its dimensions, apart by blanks.
OPENRNN_API const char* openrnn_test_tf_tensors(const ApiSpec* spec, char* out,
                                                std::int64_t capacity) {
  return call([&] {
    const TfCanonicalFormat format(to_spec(*spec));
    std::string text;
    for (const TfTensor& tensor : format.tensors()) {
      text += tensor.name;
      for (const std::int64_t size : tensor.shape) text += " " + std::to_string(size);
      text += "\n";
    }
    if (static_cast<std::int64_t>(text.size()) >= capacity) throw ArgumentError("too many names");
    std::memcpy(out, text.c_str(), text.size() + 1);
  });
}

/// `tensors`: one pointer for each, to memory of its size.
OPENRNN_API const char* openrnn_test_to_tf(const ApiSpec* spec, const void* params,
                                           std::int64_t size, void* const* tensors) {
  return call([&] {
    const TfCanonicalFormat format(to_spec(*spec));
    copy_out(format.from_opaque("to_tf", {params, format.spec().dtype, {size}}), tensors);
  });
}

OPENRNN_API const char* openrnn_test_from_tf(const ApiSpec* spec, const void* const* tensors,
                                             void* params) {
  return call([&] {
    const TfCanonicalFormat format(to_spec(*spec));
    std::vector<ConstArrayView> given;
    for (const TfTensor& tensor : format.tensors()) {
      given.push_back({tensors[given.size()], format.spec().dtype, tensor.shape});
    }
    const Array buffer = format.to_opaque("from_tf", "", given);
    std::memcpy(params, buffer.data(), buffer.size_bytes());
  });
}

}  // extern "C"
