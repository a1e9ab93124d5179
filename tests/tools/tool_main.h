// What main() of a tool does: runs it on its words, and says what went wrong.
#pragma once

#include <iostream>
#include <string>
#include <vector>

namespace openrnn::testing {

inline int tool_main(int argc, char** argv, void (*run)(const std::vector<std::string>& words)) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

}  // namespace openrnn::testing
