#include "entries/model_file.h"
#include "mutators/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  openrnn::formats::fuzz_model_file({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return openrnn::fuzz::mutate_with(openrnn::fuzz::mutate_safetensors,
                                    {data, size, max_size, seed});
}
