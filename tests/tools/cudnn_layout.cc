// Prints the table of tests/golden/cudnn_layout.txt, as the cuDNN of this machine has it.
#include <cstdio>
#include <exception>

#include "cudnn/layout_table.h"
#include "engine/cudnn_entry.h"

int main() {
  try {
    const std::string made = openrnn::gpu_description(0);
    const std::string table = openrnn::testing::layout_table(openrnn::testing::layout_specs());
    std::printf("# Made by tool_cudnn_layout: %s\n%s", made.c_str(), table.c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
