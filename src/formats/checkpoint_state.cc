#include "formats/checkpoint_state.h"

#include <charconv>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/file/atomic_file.h"
#include "formats/text_proto.h"
#include "openrnn/formats.h"

namespace openrnn {

namespace {

std::string state_path(const std::string& folder) { return folder + "/checkpoint"; }

// From a path in the file to one that a caller can open.
std::string from_stored(const std::string& folder, const std::string& stored) {
  if (stored.empty() || stored[0] == '/' || folder == ".") return stored;
  return folder + "/" + stored;
}

std::string to_stored(const std::string& folder, const std::string& path) {
  const std::string inside = folder + "/";
  if (path.starts_with(inside)) return path.substr(inside.size());
  return path;
}

double parse_double(const std::string& path, const formats::TextField& field) {
  double value = 0;
  const char* end = field.value.data() + field.value.size();
  const auto [stop, error] = std::from_chars(field.value.data(), end, value);
  if (error != std::errc() || stop != end || field.quoted) {
    throw FormatError(path, field.offset,
                      message(field.name, " is '", excerpt(field.value), "', expected a number"));
  }
  return value;
}

// The shortest digits that give the same double again.
std::string print_double(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string parse_path(const std::string& path, const formats::TextField& field) {
  const bool good =
      field.quoted && !field.value.empty() && field.value.find('\0') == std::string::npos;
  if (good) return field.value;
  throw FormatError(path, field.offset,
                    message(field.name, " is '", excerpt(field.value),
                            "', expected a quoted path without zero bytes"));
}

std::string without_end_slash(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder.empty() ? "." : folder;
}

}  // namespace

CheckpointState formats::decode_checkpoint_state(const std::string& folder, std::string_view text) {
  const std::string path = state_path(folder);
  CheckpointState state;
  for (const formats::TextField& field : formats::parse_text_proto(path, text)) {
    if (field.name == "model_checkpoint_path") {
      state.latest = from_stored(folder, parse_path(path, field));
    } else if (field.name == "all_model_checkpoint_paths") {
      state.all.push_back(from_stored(folder, parse_path(path, field)));
    } else if (field.name == "all_model_checkpoint_timestamps") {
      state.timestamps.push_back(parse_double(path, field));
    } else if (field.name == "last_preserved_timestamp") {
      state.last_preserved_timestamp = parse_double(path, field);
    }
  }
  if (state.latest.empty()) {
    throw FormatError(path, 0, "model_checkpoint_path is missing, expected the latest checkpoint");
  }
  return state;
}

std::optional<CheckpointState> read_checkpoint_state(const std::string& given) {
  const std::string folder = without_end_slash(given), path = state_path(folder);
  if (!formats::file_exists(path)) return std::nullopt;
  return formats::decode_checkpoint_state(folder,
                                          formats::read_all(formats::open_regular(path), path));
}

void write_checkpoint_state(const std::string& given, const CheckpointState& state) {
  const std::string folder = without_end_slash(given);
  if (state.latest.empty()) {
    throw ArgumentError("[write_checkpoint_state] latest is empty, expected a checkpoint's prefix");
  }
  if (!state.timestamps.empty() && state.timestamps.size() != state.all.size()) {
    throw ArgumentError(message("[write_checkpoint_state] ", state.timestamps.size(),
                                " timestamps, expected none or ", state.all.size()));
  }
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    // No stream: it would silently drop text when memory runs out.
    text.append(name).append(": ").append(value).append("\n");
  };
  const auto quoted = [&](const std::string& path) {
    return formats::quote_text(to_stored(folder, path));
  };
  line("model_checkpoint_path", quoted(state.latest));
  for (const std::string& path : state.all) line("all_model_checkpoint_paths", quoted(path));
  for (const double time : state.timestamps) {
    line("all_model_checkpoint_timestamps", print_double(time));
  }
  if (state.last_preserved_timestamp) {
    line("last_preserved_timestamp", print_double(*state.last_preserved_timestamp));
  }
  write_file_atomically(state_path(folder), text);
}

}  // namespace openrnn
