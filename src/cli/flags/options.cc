#include "cli/flags/options.h"

#include <algorithm>

namespace openrnn::cli {
namespace {

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

/// Edit distance: letters to insert, remove, replace or swap with the next one.
std::size_t distance(const std::string& a, const std::string& b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return table[i * columns + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

}  // namespace

void require_choice(const CLI::App* app, const std::string& name, const std::string& text,
                    const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return;
  refuse_value(app, name, "'" + excerpt(text) + "'", "one of " + joined(choices, ", "));
}

std::string choice_type(const std::vector<std::string>& choices) {
  return "{" + joined(choices, ",") + "}";
}

CLI::Option* add_choice(CLI::App* app, const std::string& name, std::optional<std::string>& value,
                        const std::vector<std::string>& choices, const std::string& help) {
  const auto take = [app, name, choices, &value](const std::string& text) {
    require_choice(app, name, text, choices);
    value = text;
  };
  return app->add_option_function<std::string>(name, take, help)->type_name(choice_type(choices));
}

CLI::Option* add_text(CLI::App* app, const std::string& name, std::optional<std::string>& value,
                      const std::string& help) {
  return app->add_option_function<std::string>(
      name, [&value](const std::string& text) { value = text; }, help);
}

std::optional<std::string> nearest(const std::string& typed,
                                   const std::vector<std::string>& words) {
  constexpr std::size_t kLongest = 40;  // longer than any flag or subcommand
  if (typed.size() > kLongest) return std::nullopt;
  std::optional<std::string> best;
  std::size_t least = 0;
  for (const std::string& word : words) {
    const std::size_t steps = distance(typed, word);
    // At most two edits, and fewer than half of the letters.
    if (steps > 2 || 2 * steps >= word.size()) continue;
    if (best && steps >= least) continue;
    best = word;
    least = steps;
  }
  return best;
}

void add_threads(CLI::App* app, int& threads) {
  add_number(app, "--threads", threads, {1, 1024},
             "Threads to use; results do not depend on it (default: all of this machine's)");
}

void add_device(CLI::App* app, std::string& device) {
  app->add_option("--device", device, "cpu, gpu:0, gpu:1, ... (default: OPENRNN_DEVICE, else cpu)");
}

}  // namespace openrnn::cli
