// Changes JSON, and other text of words, numbers, strings and brackets, by its tokens.
#pragma once

#include <algorithm>
#include <vector>

#include "chance.h"

namespace openrnn::fuzz {

/// Strings with their quotes, words and numbers, runs of space, single other characters.
inline std::vector<std::string> tokens_of(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '+' || c == '-';
  };
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  std::vector<std::string> tokens;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = at + 1;
    if (text[at] == '"' || text[at] == '\'') {
      while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (is_word(text[at])) {
      while (end < text.size() && is_word(text[end])) ++end;
    } else if (is_space(text[at])) {
      while (end < text.size() && is_space(text[end])) ++end;
    }
    tokens.emplace_back(text.substr(at, end - at));
  }
  return tokens;
}

inline std::string text_of(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

inline std::string json_quoted(std::string_view inside) {
  std::string text = "\"";
  for (const char c : inside) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}
inline std::string json_unquoted(std::string_view token) {
  std::string text;
  for (std::size_t i = 1; i + 1 < token.size(); ++i) {
    if (token[i] == '\\' && i + 2 < token.size()) ++i;
    text += token[i];
  }
  return text;
}

class JsonMutator {
 public:
  JsonMutator(std::vector<std::string>* tokens, Chance& chance)
      : tokens_(*tokens), chance_(chance) {}

  void change() { change(1 + chance_.below(3)); }
  void change(std::size_t times) {
    for (std::size_t left = times; left > 0 && !tokens_.empty(); --left) {
      change_one(chance_.below(tokens_.size()));
    }
  }

 private:
  void change_one(std::size_t at) {
    switch (chance_.below(10)) {
      case 0:
        return erase_value(at);
      case 1:
        return repeat_value(at);
      case 2:
        return replace_value(at);
      case 3:
        tokens_[at] = chance_.pick(tokens_);
        return;
      case 4:
        return nest(at);
      default:
        return change_token(next_value(at));
    }
  }

  // The first string, number or word from there on.
  std::size_t next_value(std::size_t at) const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::size_t here = (at + i) % tokens_.size();
      const char first = tokens_[here][0];
      if (std::string_view(" \n\t\r{}[]():,;").find(first) == std::string_view::npos) return here;
    }
    return at;
  }

  // One past the value that begins there, with all in its brackets.
  std::size_t end_of(std::size_t at) const {
    std::size_t depth = 0;
    do {
      const char first = tokens_[at++][0];
      if (first == '{' || first == '[' || first == '(') ++depth;
      if ((first == '}' || first == ']' || first == ')') && depth > 0) --depth;
    } while (depth > 0 && at < tokens_.size());
    return at;
  }

  std::vector<std::string> value_at(std::size_t at) const {
    const auto first = tokens_.begin();
    return {first + static_cast<std::ptrdiff_t>(at),
            first + static_cast<std::ptrdiff_t>(end_of(at))};
  }
  void erase_from(std::size_t at, std::size_t end) {
    tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(at),
                  tokens_.begin() + static_cast<std::ptrdiff_t>(end));
  }
  void insert_at(std::size_t at, const std::vector<std::string>& tokens) {
    tokens_.insert(tokens_.begin() + static_cast<std::ptrdiff_t>(at), tokens.begin(), tokens.end());
  }
  bool is_at(std::size_t at, std::string_view token) const {
    return at < tokens_.size() && tokens_[at] == token;
  }

  // One past a value, or a key and its value.
  std::size_t end_of_element(std::size_t at) const {
    std::size_t end = end_of(at);
    while (is_at(end, " ") || is_at(end, ":")) ++end;
    return end > end_of(at) && end < tokens_.size() ? end_of(end) : end_of(at);
  }
  void erase_value(std::size_t at) {
    std::size_t end = end_of_element(at);
    if (is_at(end, ",")) ++end;
    erase_from(at, end);
  }
  void repeat_value(std::size_t at) {
    const std::size_t end = end_of_element(at);
    std::vector<std::string> again(tokens_.begin() + static_cast<std::ptrdiff_t>(at),
                                   tokens_.begin() + static_cast<std::ptrdiff_t>(end));
    again.emplace_back(",");
    constexpr std::size_t kMostTokens = 4096;
    const std::size_t most = 1 + kMostTokens / again.size();
    const std::size_t times = chance_.one_in(8) ? std::min<std::size_t>(most, 64) : 1;
    for (std::size_t i = 0; i < times; ++i) insert_at(at, again);
  }
  void replace_value(std::size_t at) {
    const std::vector<std::string> other = value_at(chance_.below(tokens_.size()));
    erase_from(at, end_of(at));
    insert_at(at, other);
  }
  void nest(std::size_t at) {
    const std::size_t depth = chance_.one_in(8) ? 200 : 1 + chance_.below(3), end = end_of(at);
    insert_at(end, std::vector<std::string>(depth, "]"));
    insert_at(at, std::vector<std::string>(depth, "["));
  }

  void change_token(std::size_t at) {
    static const std::string kWords[] = {"null",
                                         "true",
                                         "false",
                                         "1e999",
                                         "-1",
                                         "0.5",
                                         "{}",
                                         "[]",
                                         "\"\"",
                                         "-0.0",
                                         "18446744073709551616",
                                         "NaN",
                                         "1E-400",
                                         "\"\\ud800\"",
                                         "\"\\u0000\""};
    std::string& token = tokens_[at];
    if (token[0] == '"' && token.size() > 2 && change_inner(&token)) return;
    if (chance_.one_in(4)) {
      token = chance_.pick(kWords);
    } else if (token[0] == '"' && token.size() >= 2) {
      std::string inside = token.substr(1, token.size() - 2);
      chance_.change_bytes(&inside, 8);
      token = '"' + inside + '"';
    } else if (token.find_first_not_of("0123456789") == std::string::npos && token.size() < 20) {
      token = std::to_string(chance_.number(std::stoull("0" + token)));
    } else if (token.size() > 1) {
      chance_.change_bytes(&token, 4);
      if (token.empty()) token = " ";
    }
  }

  // JSON as a string inside JSON.
  bool change_inner(std::string* token) {
    if (!token->starts_with("\"{") && !token->starts_with("\"[")) return false;
    std::vector<std::string> inner = tokens_of(json_unquoted(*token));
    if (inner.size() < 3 || chance_.one_in(8)) return false;
    JsonMutator(&inner, chance_).change();
    *token = json_quoted(text_of(inner));
    return true;
  }

  std::vector<std::string>& tokens_;
  Chance& chance_;
};

/// Any text.
inline bool mutate_json(std::string* bytes, Chance& chance) {
  std::vector<std::string> tokens = tokens_of(*bytes);
  JsonMutator(&tokens, chance).change();
  *bytes = text_of(tokens);
  return true;
}

}  // namespace openrnn::fuzz
