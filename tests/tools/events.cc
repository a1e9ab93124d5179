// tool_events write FOLDER: one event file with a few scalars; its path is printed.
// tool_events dump FILE: step, tag and value of each scalar, one a line.
#include <openrnn/formats.h>

#include <cstring>
#include <iostream>

using namespace openrnn;

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  if (std::strcmp(argv[1], "write") == 0) {
    EventWriter writer(argv[2]);
    writer.add_scalar("loss", 0, 2.5);
    writer.add_scalar("loss", 7, 0.5);
    writer.add_scalar("validation/bits", 7, -0.25);
    writer.flush();
    std::cout << writer.path() << '\n';
    return 0;
  }
  for (const ScalarEvent& event : read_scalar_events(argv[2])) {
    std::cout << event.step << ' ' << event.tag << ' ' << event.value << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
