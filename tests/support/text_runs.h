// What tests of training runs share: a text of random words, and all that a graph holds.
#pragma once

#include <map>
#include <span>
#include <string>

#include "openrnn/train.h"

namespace openrnn::train {

/// Every variable's bytes by its name.
using Bytes = std::map<std::string, std::string>;

inline Bytes bytes_of(const Graph& graph) {
  Bytes all;
  for (const Variable& variable : graph.variables()) {
    const Array value = variable.to_host();
    all[variable.name()].assign(static_cast<const char*>(value.data()), value.size_bytes());
  }
  return all;
}

/// Random words: the first `train` bytes to learn, the others, `valid` at least, to try.
inline Text text_of_words(std::span<const char* const> words, std::size_t train,
                          std::size_t valid) {
  std::string all;
  RandomStream random(3);
  const auto count = static_cast<std::uint32_t>(words.size());
  while (all.size() < train + valid) all += words[random.below(count)];
  Text text;
  text.train = all.substr(0, train);
  text.valid = all.substr(train);
  text.vocabulary = Vocabulary::of_text(text.train, TextLevel::kByte);
  return text;
}

}  // namespace openrnn::train
