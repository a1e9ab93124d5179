// Arguments that a call leaves out are those that its header says, and small answers of results.
#include <gtest/gtest.h>

#include "openrnn/layers.h"
#include "openrnn/ops.h"
#include "openrnn/ops_tensor.h"
#include "openrnn/train.h"

namespace openrnn::train {
namespace {

TEST(Defaults, OfResultsAndNetworks) {
  const StepValues values = StepResult().values();
  EXPECT_TRUE(StepResult().known() && values.applied);
  EXPECT_EQ(values.gradient_norm, 0.0);
  EXPECT_EQ(values.loss, 0.0);
  EXPECT_EQ(DataPosition{}, (DataPosition{0, 0}));
  EXPECT_EQ(ModelConfig{}.network, RnnSpec{});
  EXPECT_EQ(ModelConfig{}.seed(), 0U);
  EXPECT_EQ(layers::CudnnRnnOptions{}.network, RnnSpec{});
  EXPECT_EQ(PackOptions(PackFor::kTraining).max_threads, 0);
}

Tensor numbers(const Shape& shape) {
  Array values(DType::kFloat64, shape);
  for (std::int64_t i = 0; i < values.size(); ++i) {
    values.as<double>()[static_cast<std::size_t>(i)] = 0.05 + 0.0625 * static_cast<double>(i % 13);
  }
  return Tensor(values.view());
}

Tensor integers(const std::vector<std::int32_t>& values) {
  return Tensor({values.data(), DType::kInt32, {static_cast<std::int64_t>(values.size())}});
}

TEST(Defaults, OfOperations) {
  const auto same = [](const Tensor& left, const Tensor& spelled) {
    EXPECT_EQ(left.shape(), spelled.shape());
    const Array a = left.value().to_host(), b = spelled.value().to_host();
    for (std::int64_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(element(a.view(), i), element(b.view(), i)) << i;
    }
  };
  const Tensor x = numbers({3, 2, 4});
  const Tensor rows = integers({1, 0});
  same(ops::gather(x, rows), ops::gather(x, rows, 0));
  same(ops::log_softmax(x), ops::log_softmax(x, 2));
  same(ops::transpose(x), ops::transpose(x, {2, 1, 0}));
  same(ops::squeeze(numbers({1, 3, 1})), numbers({3}));
  same(ops::reverse_sequence(x, {2, 3}), ops::reverse_sequence(x, {2, 3}, true));
  const Tensor lengths = integers({2, 3});
  same(ops::reverse_sequence_by(x, lengths), ops::reverse_sequence(x, {2, 3}, true));
  const double extremes[] = {0.0, 1.0, 0.0};
  const Tensor certain({extremes, DType::kFloat64, {2}}),
      labels({extremes + 1, DType::kFloat64, {2}});
  same(ops::binary_cross_entropy_rows(certain, labels),
       ops::binary_cross_entropy_rows(certain, labels, 1e-7));
  same(ops::reduce_max(x), ops::reduce_max(x, {.axes = {{0, 1, 2}}, .keepdims = false}));
}

TEST(Defaults, OfConstructors) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const auto num_layers = [](layers::CudnnRnn&& layer) {
    layer.build({4, 2, 3});
    return layer.spec().num_layers;
  };
  EXPECT_EQ(num_layers(layers::LSTM(3)), 1);
  EXPECT_EQ(num_layers(layers::GRU(3)), 1);
  EXPECT_EQ(num_layers(layers::RNN(3)), 1);
  EXPECT_TRUE(Variable("a", Array(DType::kFloat32, {1})).trainable());
  EXPECT_EQ(Input({2, 3}).dtype(), DType::kFloat32);
  EXPECT_EQ(RandomStream(5).next_uint32(), RandomStream(5, 0).next_uint32());
}

/// What three steps leave.
std::vector<double> trained(Optimizer& optimizer) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w("w", Array(DType::kFloat64, {2}));
  for (const double scale : {1.0, -0.25, 2.0}) {
    const double slope[] = {1e-7 * scale, -3.0 * scale};
    optimizer.apply_gradients(
        {DeviceArray::from_host(default_device(), Array::of<double>({2}, slope).view())}, {w});
  }
  const Array values = w.to_host();
  return {element(values.view(), 0), element(values.view(), 1)};
}

TEST(Defaults, OfOptimizers) {
  const auto expect_same = [](Optimizer&& optimizer, Optimizer&& spelled) {
    EXPECT_EQ(optimizer.learning_rate(), spelled.learning_rate());
    EXPECT_EQ(trained(optimizer), trained(spelled)) << optimizer.name();
  };
  expect_same(AdamOptimizer(), AdamOptimizer(0.001, 0.9, 0.999, 1e-8));
  expect_same(AdamWOptimizer(), AdamWOptimizer(0.001, 0.9, 0.999, 1e-8, 0.0));
  expect_same(AdagradOptimizer(0.25), AdagradOptimizer(0.25, 0.1));
  expect_same(RMSPropOptimizer(0.25), RMSPropOptimizer(0.25, 0.9, 0.0, 1e-10, false));
  expect_same(MomentumOptimizer(0.25, 0.5), MomentumOptimizer(0.25, 0.5, false));
}

TEST(SeriesScore, NaiveIsTheBetterOfTwo) {
  SeriesScore score{.season = 7, .last_value_total = 2.0, .seasonal_total = 1.0};
  EXPECT_EQ(score.naive_total(), 1.0);
  score.seasonal_total = 3.0;
  EXPECT_EQ(score.naive_total(), 2.0);
  score = {.season = 0, .last_value_total = 2.0, .seasonal_total = 0.0};
  EXPECT_EQ(score.naive_total(), 2.0);
}

TEST(TextScore, IsOfItsBytes) {
  EXPECT_EQ((TextScore{.bits = 6.0, .symbols = 2, .bytes = 4}.bits_per_byte()), 1.5);
  EXPECT_EQ(TextScore{}.bits_per_byte(), 0.0);
}

TEST(Tasks, NameTheirMetrics) {
  Graph graph;
  const Graph::AsDefault current(graph);
  Text text;
  text.train = "ab\ncab\n";
  text.vocabulary = Vocabulary::of_text(text.train, TextLevel::kByte);
  SequenceModel model({.network = {.num_units = 2},
                       .vocabulary = text.vocabulary.size(),
                       .embedding = 3,
                       .outputs = text.vocabulary.size()});
  const TextTask of_text(model, text, {.batch = 2, .seq_len = 3});
  EXPECT_EQ(of_text.metric_name(), "bits per byte");
  EXPECT_EQ(of_text.batch(), 2);
  EXPECT_EQ(of_text.rows({}), 2);
  EXPECT_EQ(of_text.items({}), 6);
  std::vector<std::string> names;
  for (const Variable& variable : model.variables()) names.push_back(variable.name());
  EXPECT_EQ(names, (std::vector<std::string>{"embedding/embeddings", "cudnn_lstm/opaque_kernel",
                                             "dense/kernel", "dense/bias"}));
  SeriesTable table{{"a"}, {}, Array(DType::kFloat64, {30, 1})};
  for (std::size_t i = 0; i < 30; ++i) table.values.as<double>()[i] = static_cast<double>(i % 7);
  const SeriesWindows windows(table, {.window = 3, .batch = 20});
  SequenceModel forecaster({.network = {.num_units = 2}, .columns = 1, .outputs = 1});
  const SeriesTask of_series(forecaster, windows, false);
  EXPECT_EQ(of_series.metric_name(), "loss");
  EXPECT_EQ(of_series.metric(1.5), 1.5);
  EXPECT_EQ(of_series.batch(), 20);
  EXPECT_EQ(of_series.items({0, 1}), windows.rows({0, 1}));
}

}  // namespace
}  // namespace openrnn::train
