// Sequence to sequence: one LSTM reads a word, another spells it backwards, and both are in one
// checkpoint. encoder_decoder TEXT PREFIX [STEPS | restore]
//
// The words are those of the text, of 3 to 8 letters; every tenth is held out. With `restore`
// nothing is trained: a new process gives the same bits.
#include <openrnn/openrnn.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>

namespace {

using namespace openrnn;
using Words = std::vector<std::string>;

// Symbol 0 begins and ends a spelling; 1 to 26 are letters. A label of -1 is ignored.
constexpr std::int64_t kLongest = 8, kSymbols = 27;
constexpr std::int32_t kEnd = 0, kIgnored = -1;

// Different words, lower-case, in alphabetical order: what stands between blanks and is all
// letters.
Words words_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw IoError("[words_of] cannot read '" + path + "'");
  std::set<std::string> found;
  for (std::string word; file >> word;) {
    for (char& letter : word) letter = static_cast<char>(letter | 0x20);  // lower case
    const bool letters = std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
    if (letters && word.size() >= 3 && word.size() <= kLongest) found.insert(word);
  }
  return {found.begin(), found.end()};
}

std::string backwards(const std::string& word) { return {word.rbegin(), word.rend()}; }

// Symbols of words as columns [T, B]: those of `first`, the letters, then `fill`.
Array columns(const Words& words, const std::vector<std::int32_t>& first, std::int64_t steps,
              std::int32_t fill) {
  const std::size_t batch = words.size();
  Array symbols(DType::kInt32, {steps, static_cast<std::int64_t>(batch)});
  const auto at = symbols.as<std::int32_t>();
  std::ranges::fill(at, fill);
  for (std::size_t b = 0; b < batch; ++b) {
    std::size_t t = 0;
    for (const std::int32_t symbol : first) at[t++ * batch + b] = symbol;
    for (const char letter : words[b]) at[t++ * batch + b] = letter - 'a' + 1;
  }
  return symbols;
}

class Speller {
 public:
  // The encoder's final state of the words, (h, c).
  std::vector<Tensor> read(const Words& words, bool training) {
    std::vector<std::int32_t> lengths;
    for (const std::string& word : words) {
      lengths.push_back(static_cast<std::int32_t>(word.size()));
    }
    const Array letters = columns(words, {}, kLongest, kEnd);
    return encoder_(embedding_(letters.view()), {},
                    {.sequence_lengths = lengths, .training = training})
        .state;
  }

  // Logits [T, B, symbols] of what follows the symbols [T, B]; updates `state`.
  Tensor write(const Array& symbols, std::vector<Tensor>& state, bool training) {
    const auto result = decoder_(embedding_(symbols.view()), state, {.training = training});
    state = result.state;
    return dense_(result.output);
  }

 private:
  layers::Embedding embedding_{{.vocabulary = kSymbols, .dim = 32, .seed = 1}};
  layers::CudnnLSTM encoder_{
      {.network = {.num_units = 128, .training = {.seed = 2}}, .name = "encoder"}};
  layers::CudnnLSTM decoder_{
      {.network = {.num_units = 128, .training = {.seed = 3}}, .name = "decoder"}};
  layers::Dense dense_{{.units = kSymbols, .seed = 4}};
};

// Teacher forcing: the decoder gets the right spelling so far, whatever it would have written.
Tensor training_loss(Speller& speller, const Words& words) {
  Words targets;
  for (const std::string& word : words) targets.push_back(backwards(word));
  Array labels = columns(targets, {}, kLongest + 1, kIgnored);
  for (std::size_t b = 0; b < words.size(); ++b) {
    labels.as<std::int32_t>()[words[b].size() * words.size() + b] = kEnd;
  }
  std::vector<Tensor> state = speller.read(words, /*training=*/true);
  const Tensor logits =
      speller.write(columns(targets, {kEnd}, kLongest + 1, kEnd), state, /*training=*/true);
  return ops::softmax_cross_entropy(logits, Tensor(labels.view()));
}

// Greedy decoding: each symbol is the most probable one, and the next step's input.
// Appends the bytes of all logits to `bits`.
Words spell(Speller& speller, const Words& words, std::string& bits) {
  Words spelt(words.size());
  std::vector<bool> ended(words.size());
  std::vector<Tensor> state = speller.read(words, /*training=*/false);
  Array symbols(DType::kInt32, {1, static_cast<std::int64_t>(words.size())});  // of kEnd
  for (std::int64_t t = 0; t < kLongest; ++t) {
    const Array logits = speller.write(symbols, state, /*training=*/false).to_host();
    bits.append(static_cast<const char*>(logits.data()), logits.size_bytes());
    for (std::size_t b = 0; b < words.size(); ++b) {
      const auto row = logits.as<float>().subspan(b * kSymbols, kSymbols);
      const auto best = std::ranges::max_element(row) - row.begin();
      symbols.as<std::int32_t>()[b] = static_cast<std::int32_t>(best);
      ended[b] = ended[b] || best == kEnd;
      if (!ended[b]) spelt[b] += static_cast<char>('a' + best - 1);
    }
  }
  return spelt;
}

void train_speller(Speller& speller, const Words& words, std::int64_t steps) {
  train::AdamOptimizer adam;
  const train::Schedule schedule{
      .kind = train::ScheduleKind::kCosine, .learning_rate = 5e-3, .decay_steps = steps};
  RandomStream draw(/*seed=*/5);
  for (std::int64_t step = 0; step < steps; ++step) {
    Words batch;
    for (int b = 0; b < 128; ++b) batch.push_back(words[draw.below(words.size())]);
    const GradientTape tape;
    const Tensor loss = training_loss(speller, batch);
    adam.set_learning_rate(schedule.at(step));
    adam.minimize(tape, loss, Graph::current().trainable_variables(), {}, /*clip_norm=*/1.0);
    if ((step + 1) % 100 == 0) std::cout << "step " << step + 1 << ": loss " << loss.item() << '\n';
  }
}

// Prints some words and how many are right; returns the bits of all logits.
std::string report(Speller& speller, const Words& held_out) {
  std::string bits;
  const Words spelt = spell(speller, held_out, bits);
  std::size_t right = 0;
  for (std::size_t i = 0; i < held_out.size(); ++i) {
    right += spelt[i] == backwards(held_out[i]) ? 1 : 0;
    if (i % (held_out.size() / 5) == 0) std::cout << held_out[i] << " -> " << spelt[i] << '\n';
  }
  std::cout << "held-out words right: " << right << " of " << held_out.size() << '\n'
            << "logits: " << train::fingerprint(bits) << '\n';
  return bits;
}

// New objects, filled from the checkpoint.
std::string restore_and_report(const std::string& prefix, const Words& held_out) {
  Graph graph;  // of its own, so that the names are those of the checkpoint
  const Graph::AsDefault as_default(graph);
  Speller speller;
  std::string ignored;
  spell(speller, {"first"}, ignored);  // the first call makes the variables
  Saver().restore(prefix);
  std::cout << "restored " << graph.saveables().size() << " saveables\n";
  return report(speller, held_out);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw ArgumentError("usage: encoder_decoder TEXT PREFIX [STEPS | restore]");
  const std::string prefix = argv[2], how = argc > 3 ? argv[3] : "600";
  Words words, held_out;
  for (const std::string& word : words_of(argv[1])) {
    ((words.size() + held_out.size()) % 10 == 9 ? held_out : words).push_back(word);
  }
  if (held_out.size() < 5) throw ArgumentError("[encoder_decoder] the text has too few words");
  std::cout << words.size() << " words to train on, " << held_out.size() << " held out\n";

  if (how == "restore") {
    restore_and_report(prefix, held_out);
    return 0;
  }
  Speller speller;
  train_speller(speller, words, std::stoll(how));
  const std::string bits = report(speller, held_out);
  Saver().save(prefix);  // two Saveables, and the variables, Adam's among them
  const bool same = restore_and_report(prefix, held_out) == bits;
  std::cout << (same ? "the same bits\n" : "OTHER BITS\n");
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
