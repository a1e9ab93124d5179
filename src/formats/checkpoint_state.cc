#include "formats/checkpoint_state.h"

#include <algorithm>
#include <charconv>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/file/atomic_file.h"
#include "openrnn/formats.h"

namespace openrnn {

namespace {

struct StateField {
  std::string name;
  /// A string without its quotes and escapes, or a number as written.
  std::string value;
  bool quoted = false;
  std::size_t offset = 0;
};

// `name: value` and again, as protocol buffers are printed; '#' begins a comment. A state file has
// no lists and no messages inside.
class StateReader {
 public:
  StateReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  /// Nothing at the end.
  std::optional<StateField> next() {
    if (!skip_space()) return std::nullopt;
    StateField field;
    field.name = word("a field's name");
    if (!skip_space() || text_[at_] != ':') {
      fail("expected ':' after '" + excerpt(field.name) + "'");
    }
    ++at_;
    field.quoted = skip_space() && (text_[at_] == '"' || text_[at_] == '\'');
    field.offset = at_;
    field.value = field.quoted ? quoted() : word("a quoted string or a number");
    return field;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FormatError(path_, at_, what); }
  bool more() const { return at_ < text_.size(); }
  std::size_t end_of(std::size_t found) const { return std::min(found, text_.size()); }

  // Whether anything follows.
  bool skip_space() {
    const auto skip = [this] { at_ = end_of(text_.find_first_not_of(" \t\r\n", at_)); };
    for (skip(); more() && text_[at_] == '#'; skip()) at_ = end_of(text_.find('\n', at_));
    return more();
  }

  std::string word(const char* expected) {
    constexpr std::string_view kLetters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    const std::size_t start = at_;
    at_ = end_of(text_.find_first_not_of(kLetters, at_));
    if (at_ == start) fail(message("expected ", expected));
    return std::string(text_.substr(start, at_ - start));
  }

  std::string quoted() {
    const char quote = text_[at_++];
    std::string value;
    while (more() && text_[at_] != quote && text_[at_] != '\n') {
      const char c = text_[at_++];
      value += c == '\\' ? escaped() : c;
    }
    if (!more() || text_[at_] != quote) fail("a string does not end in its line");
    ++at_;
    return value;
  }

  char escaped() {
    if (!more()) fail("a string ends in an escape");
    const char c = text_[at_++];
    constexpr std::string_view kNames = "abfnrtv\\\"'?", kValues = "\a\b\f\n\r\t\v\\\"'?";
    if (const std::size_t i = kNames.find(c); i != std::string_view::npos) return kValues[i];
    if (c == 'x' || c == 'X') return number(16, 2);
    if (c < '0' || c > '7') fail(message("an escape that is not known: \\", excerpt({&c, 1})));
    --at_;
    return number(8, 3);
  }

  char number(int base, std::size_t max_digits) {
    const std::string_view digits = text_.substr(at_, max_digits);
    unsigned value = 0;
    const char* const stop =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ptr;
    if (stop == digits.data()) fail("expected digits in an escape");
    at_ += static_cast<std::size_t>(stop - digits.data());
    return static_cast<char>(value);
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

// With quotes; all but printable ASCII escaped, as TensorFlow writes it.
std::string quoted_path(std::string_view value) {
  constexpr std::string_view kNames = "nrt\\\"'", kValues = "\n\r\t\\\"'";
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t i = kValues.find(c); i != std::string_view::npos) {
      text.append({'\\', kNames[i]});
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += '\\';
      for (const int shift : {6, 3, 0}) text += static_cast<char>('0' + ((byte >> shift) & 7));
    }
  }
  return text + "\"";
}

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

double parse_double(const std::string& path, const StateField& field) {
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

std::string parse_path(const std::string& path, const StateField& field) {
  const bool good =
      field.quoted && !field.value.empty() && field.value.find('\0') == std::string::npos;
  if (good) return field.value;
  throw FormatError(path, field.offset,
                    message(field.name, " is '", excerpt(field.value),
                            "', expected a quoted path without zero bytes"));
}

std::optional<std::string> newest_there(const CheckpointState& state) {
  if (tensor_bundle_exists(state.latest)) return state.latest;
  for (auto prefix = state.all.rbegin(); prefix != state.all.rend(); ++prefix) {
    if (tensor_bundle_exists(*prefix)) return *prefix;
  }
  return {};
}

std::string without_end_slash(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder.empty() ? "." : folder;
}

}  // namespace

CheckpointState formats::decode_checkpoint_state(const std::string& folder, std::string_view text) {
  const std::string path = state_path(folder);
  CheckpointState state;
  StateReader fields(path, text);
  while (const std::optional<StateField> field = fields.next()) {
    if (field->name == "model_checkpoint_path") {
      state.latest = from_stored(folder, parse_path(path, *field));
    } else if (field->name == "all_model_checkpoint_paths") {
      state.all.push_back(from_stored(folder, parse_path(path, *field)));
    } else if (field->name == "all_model_checkpoint_timestamps") {
      state.timestamps.push_back(parse_double(path, *field));
    } else if (field->name == "last_preserved_timestamp") {
      state.last_preserved_timestamp = parse_double(path, *field);
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

std::optional<std::string> formats::latest_checkpoint_in(const std::string& folder) {
  for (;;) {
    const std::optional<CheckpointState> state = read_checkpoint_state(folder);
    if (!state) return {};
    if (auto found = newest_there(*state)) return found;
    // A run may have saved another one and removed these meanwhile.
    const std::optional<CheckpointState> again = read_checkpoint_state(folder);
    if (!again || again->latest == state->latest) return {};
  }
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
  const auto quoted = [&](const std::string& path) { return quoted_path(to_stored(folder, path)); };
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
