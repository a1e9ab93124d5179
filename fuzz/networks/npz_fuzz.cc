#include "../model_file_entries.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  openrnn::formats::fuzz_npz({reinterpret_cast<const char*>(data), size});
  return 0;
}
