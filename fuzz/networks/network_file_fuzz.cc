#include "network_file_entries.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  openrnn::fuzz_network_file({reinterpret_cast<const char*>(data), size});
  return 0;
}
