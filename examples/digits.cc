// Handwritten digits as sequences: a bidirectional GRU reads an 8 x 8 image row by row, and a dense
// layer names the digit. digits FILE.csv [EPOCHS]
//
// A line of the file is a label, then 64 pixels from 0 to 16. The last fifth of the lines is held
// out.
#include <openrnn/openrnn.h>

#include <algorithm>
#include <iostream>

namespace {

using namespace openrnn;

constexpr std::int64_t kSide = 8, kPixels = kSide * kSide, kClasses = 10, kBatch = 32;

// One line of the file.
struct Digit {
  std::int32_t label;
  std::span<const double> pixels;
};

std::vector<Digit> digits_of(const train::SeriesTable& table) {
  if (table.names.size() != 1 + kPixels) {
    throw ArgumentError("[digits] a line of " + std::to_string(table.names.size()) +
                        " numbers, expected a label and 64 pixels");
  }
  const auto cells = table.values.as<double>();
  std::vector<Digit> digits;
  for (std::size_t at = 0; at < cells.size(); at += 1 + kPixels) {
    digits.push_back({static_cast<std::int32_t>(cells[at]), cells.subspan(at + 1, kPixels)});
  }
  return digits;
}

// Layers are time-major: step t of a batch is row t of every image, [T, B, I].
Tensor images_of(std::span<const Digit> digits) {
  const auto batch = static_cast<std::int64_t>(digits.size());
  Array x(DType::kFloat32, {kSide, batch, kSide});
  auto next = x.as<float>().begin();
  for (std::int64_t t = 0; t < kSide; ++t) {
    for (const Digit& digit : digits) {
      for (std::int64_t i = 0; i < kSide; ++i) {
        *next++ = static_cast<float>(digit.pixels[static_cast<std::size_t>(t * kSide + i)] / 16.0);
      }
    }
  }
  return Tensor(x.view());
}

Tensor labels_of(std::span<const Digit> digits) {
  Array labels(DType::kInt32, {static_cast<std::int64_t>(digits.size())});
  std::ranges::transform(digits, labels.as<std::int32_t>().begin(), &Digit::label);
  return Tensor(labels.view());
}

// The network: logits [B, 10] of images [T, B, I].
class Classifier {
 public:
  Tensor operator()(const Tensor& images, bool training) {
    const layers::RnnResult result = gru_(images, {}, {.training = training});
    // Each direction's last state has seen the whole image. Those of the upper layer, the last two
    // of [L * D, B, U], become [B, D * U].
    const Tensor upper = ops::slice(result.state[0], {.axis = 0, .begin = 2, .size = 2});
    return dense_(ops::reshape(ops::transpose_leading(upper), {images.shape()[1], -1}));
  }

 private:
  layers::CudnnGRU gru_{{.num_layers = 2,
                         .num_units = 64,
                         .direction = Direction::kBidirectional,
                         .training = {.dropout = 0.5, .seed = 1}}};
  layers::Dense dense_{{.units = kClasses, .seed = 2}};
};

// Accuracy: fraction of the digits whose largest score is that of their label.
double accuracy(std::span<const Digit> digits, std::span<const float> scores) {
  std::size_t right = 0;
  for (std::size_t b = 0; b < digits.size(); ++b) {
    const auto row = scores.subspan(b * kClasses, kClasses);
    right += std::ranges::max_element(row) - row.begin() == digits[b].label ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(digits.size());
}

// The baseline: the nearest of the ten mean images. Scores are negative distances.
std::vector<float> nearest_mean(std::span<const Digit> train, std::span<const Digit> held_out) {
  std::vector<double> sums(kClasses * kPixels), counts(kClasses);
  for (const Digit& digit : train) {
    const auto label = static_cast<std::size_t>(digit.label);
    counts[label] += 1.0;
    for (std::size_t i = 0; i < kPixels; ++i) sums[label * kPixels + i] += digit.pixels[i];
  }
  std::vector<float> scores;
  for (const Digit& digit : held_out) {
    for (std::size_t label = 0; label < kClasses; ++label) {
      double distance = 0.0;
      for (std::size_t i = 0; i < kPixels; ++i) {
        const double d = digit.pixels[i] - sums[label * kPixels + i] / counts[label];
        distance += d * d;
      }
      scores.push_back(static_cast<float>(-distance));
    }
  }
  return scores;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw ArgumentError("usage: digits FILE.csv [EPOCHS]");
  const int epochs = argc > 2 ? std::stoi(argv[2]) : 30;
  const train::SeriesTable table = train::load_series(argv[1]);
  std::vector<Digit> train = digits_of(table);
  const std::vector<Digit> held_out(train.end() - static_cast<std::ptrdiff_t>(train.size() / 5),
                                    train.end());
  train.resize(train.size() - held_out.size());
  std::cout << "digits: " << train.size() << " to train on, " << held_out.size() << " held out\n"
            << "accuracy of the nearest mean image: "
            << accuracy(held_out, nearest_mean(train, held_out)) << '\n';

  Classifier classifier;
  train::AdamOptimizer adam;
  const auto batches = static_cast<std::int64_t>(train.size()) / kBatch;
  const train::Schedule schedule{
      .kind = train::ScheduleKind::kCosine, .learning_rate = 1e-2, .decay_steps = epochs * batches};
  RandomStream shuffle(/*seed=*/2);
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t i = train.size(); i > 1; --i) std::swap(train[i - 1], train[shuffle.below(i)]);
    double loss_sum = 0.0;
    for (std::int64_t b = 0; b < batches; ++b) {
      const auto batch = std::span<const Digit>(train).subspan(b * kBatch, kBatch);
      const GradientTape tape;
      const Tensor logits = classifier(images_of(batch), /*training=*/true);
      const Tensor loss = ops::softmax_cross_entropy(logits, labels_of(batch));
      adam.set_learning_rate(schedule.at(epoch * batches + b));
      adam.minimize(tape, loss, Graph::current().trainable_variables());
      loss_sum += loss.item();
    }
    std::cout << "epoch " << epoch + 1 << ": loss " << loss_sum / static_cast<double>(batches)
              << '\n';
  }

  const Array logits = classifier(images_of(held_out), /*training=*/false).to_host();
  std::cout << "accuracy of the network: " << accuracy(held_out, logits.as<float>()) << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
