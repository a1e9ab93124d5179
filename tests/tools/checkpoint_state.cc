// tool_checkpoint_state write FOLDER PATH...: the last path is the latest.
// tool_checkpoint_state dump FOLDER: the latest path, then all, one a line.
#include <openrnn/formats.h>

#include <iostream>

using namespace openrnn;

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.at(0) == "write") {
    CheckpointState state;
    state.all.assign(words.begin() + 2, words.end());
    state.latest = state.all.back();
    state.timestamps.assign(state.all.size(), 1.7e9 + 0.125);
    state.last_preserved_timestamp = 1.6e9 + 0.5;
    write_checkpoint_state(words.at(1), state);
    return 0;
  }
  const std::optional<CheckpointState> state = read_checkpoint_state(words.at(1));
  std::cout << (state ? state->latest : "none") << '\n';
  if (!state) return 0;
  for (const std::string& path : state->all) std::cout << path << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
