#include "onnx_entries.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  openrnn::formats::fuzz_onnx({reinterpret_cast<const char*>(data), size});
  return 0;
}
