// What options are where nobody gives them, as the headers say it, and small answers of results.
#include <gtest/gtest.h>

#include "openrnn/cells_layer_norm.h"
#include "openrnn/mapping_onnx.h"
#include "openrnn/ops.h"
#include "openrnn/ops_cudnn.h"
#include "openrnn/ops_tensor.h"
#include "openrnn/runtime.h"
#include "openrnn/train.h"

namespace openrnn::train {
namespace {

TEST(Defaults, OfASchedule) {
  const Schedule schedule;
  EXPECT_EQ(schedule.kind, ScheduleKind::kConstant);
  EXPECT_EQ(schedule.learning_rate, 1e-3);
  EXPECT_EQ(schedule.warmup_steps, 0);
  EXPECT_EQ(schedule.decay_steps, 0);
  EXPECT_EQ(schedule.decay_rate, 0.5);
  EXPECT_EQ(schedule.final_fraction, 0.0);
}

TEST(Defaults, OfFits) {
  const FitOptions fit;
  EXPECT_EQ(fit.steps, 1000);
  EXPECT_EQ(fit.clip_norm, 1.0);
  EXPECT_EQ(fit.validate_every, 0);
  EXPECT_EQ(fit.patience, 0);
  EXPECT_EQ(fit.micro_batches, 1);
  EXPECT_EQ(fit.communicator, nullptr);
  EXPECT_EQ(fit.reduction, Reduction::kExact);
  EXPECT_FALSE(fit.overlap);
  const StepValues values = StepResult().values();
  EXPECT_TRUE(StepResult().known() && values.applied);
  EXPECT_EQ(values.gradient_norm, 0.0);
  EXPECT_EQ(values.loss, 0.0);
  const NcclOptions nccl;
  EXPECT_EQ(nccl.device, -1);
  EXPECT_EQ(nccl.timeout_seconds, 1800.0);
}

TEST(Defaults, OfData) {
  const TextOptions text;
  EXPECT_EQ(text.level, TextLevel::kByte);
  EXPECT_EQ(text.valid_fraction, 0.05);
  EXPECT_EQ(text.map_above, std::uint64_t{64} << 20);
  const TextStreams::Options streams;
  EXPECT_EQ(streams.batch, 32);
  EXPECT_EQ(streams.seq_len, 100);
  EXPECT_EQ(streams.segment_windows, 16);
  EXPECT_EQ(streams.seed, 0U);
  const TextTask::Options task;
  EXPECT_EQ(task.batch, 32);
  EXPECT_EQ(task.seq_len, 100);
  EXPECT_EQ(task.quick_bytes, 32768);
  const SeriesOptions series;
  EXPECT_EQ(series.window, 32);
  EXPECT_EQ(series.horizon, 1);
  EXPECT_FALSE(series.to_sequence);
  EXPECT_EQ(series.batch, 32);
  EXPECT_EQ(series.valid_fraction, 0.2);
  EXPECT_EQ(series.seed, 0U);
  EXPECT_EQ(DataPosition{}, (DataPosition{0, 0}));
}

TEST(Defaults, OfModels) {
  const ModelConfig model;
  EXPECT_EQ(model.network, RnnSpec{});
  EXPECT_EQ(model.vocabulary, 0);
  EXPECT_EQ(model.embedding, 0);
  EXPECT_EQ(model.columns, 0);
  EXPECT_EQ(model.outputs, 0);
  EXPECT_EQ(model.seed(), 0U);
  const SampleOptions sample;
  EXPECT_EQ(sample.symbols, 500);
  EXPECT_EQ(sample.temperature, 1.0);
  EXPECT_EQ(sample.top_k, 0);
  EXPECT_EQ(sample.prime, "");
  EXPECT_EQ(sample.seed, 0U);
}

TEST(Defaults, OfRuns) {
  const RunConfig config;
  EXPECT_EQ(config.task, "text");
  EXPECT_EQ(config.optimizer, "adam");
  EXPECT_EQ(config.batch, 32);
  EXPECT_EQ(config.seq_len, 100);
  EXPECT_EQ(config.epochs, 0);
  EXPECT_EQ(config.level, TextLevel::kByte);
  EXPECT_EQ(config.horizon, 1);
  EXPECT_FALSE(config.to_sequence);
  EXPECT_EQ(config.valid_fraction, 0.05);
  const RunOptions options;
  EXPECT_EQ(options.out, "out");
  EXPECT_FALSE(options.resume);
  EXPECT_EQ(options.save_steps, 0);
  EXPECT_EQ(options.save_seconds, 20.0);
  EXPECT_EQ(options.keep, 5);
  EXPECT_EQ(options.recompute, 0);
  EXPECT_EQ(options.device, nullptr);
  EXPECT_EQ(options.communicator, nullptr);
  EXPECT_EQ(options.reduction, Reduction::kExact);
  EXPECT_FALSE(options.overlap);
  const TrainedArithmetic arithmetic;
  EXPECT_EQ(arithmetic.math, "float32");
  EXPECT_EQ(arithmetic.kind, "float32");
  EXPECT_EQ(arithmetic.version, "1");
}

template <class Options>
void expect_plain(const Options& options) {
  EXPECT_EQ(options.num_units, 0);
  EXPECT_EQ(options.dtype, DType::kFloat32);
  EXPECT_EQ(options.device, nullptr);
  EXPECT_FALSE(options.reuse);
}

TEST(Defaults, OfCells) {
  expect_plain(CompatibleCellOptions{});
  expect_plain(GRUCellOptions{});
  EXPECT_EQ(CompatibleCellOptions{}.num_proj, 0);
  const LSTMCellOptions lstm;
  expect_plain(lstm);
  EXPECT_EQ(lstm.forget_bias, 1.0);
  EXPECT_EQ(lstm.num_proj, 0);
  EXPECT_FALSE(lstm.use_peepholes || lstm.cell_clip || lstm.proj_clip);
  expect_plain(BasicLSTMCellOptions{});
  EXPECT_EQ(BasicLSTMCellOptions{}.forget_bias, 1.0);
  const LayerNormBasicLSTMCellOptions normed;
  expect_plain(normed);
  EXPECT_TRUE(normed.layer_norm);
  EXPECT_EQ(normed.forget_bias, 1.0);
  EXPECT_EQ(normed.norm_gain, 1.0);
  EXPECT_EQ(normed.norm_shift, 0.0);
  EXPECT_EQ(normed.dropout_keep_prob, 1.0);
  const DropoutWrapperOptions dropout;
  EXPECT_EQ(dropout.input_keep_prob, 1.0);
  EXPECT_EQ(dropout.output_keep_prob, 1.0);
  EXPECT_EQ(dropout.state_keep_prob, 1.0);
  EXPECT_FALSE(DynamicRnnOptions{}.time_major || BidirectionalOptions{}.time_major ||
               StackBidirectionalOptions{}.time_major);
}

TEST(Defaults, OfLayersAndVariables) {
  EXPECT_TRUE(layers::CudnnRnnOptions{}.trainable);
  EXPECT_EQ(layers::CudnnRnnOptions{}.network, RnnSpec{});
  const layers::DenseOptions dense;
  EXPECT_EQ(dense.activation, layers::Activation::kLinear);
  EXPECT_TRUE(dense.use_bias);
  EXPECT_EQ(dense.dtype, DType::kFloat32);
  EXPECT_EQ(dense.device, nullptr);
  EXPECT_EQ(layers::EmbeddingOptions{}.dtype, DType::kFloat32);
  EXPECT_EQ(layers::EmbeddingOptions{}.device, nullptr);
  EXPECT_EQ(layers::DropoutOptions{}.rate, 0.5);
  const VariableOptions variable;
  EXPECT_EQ(variable.dtype, DType::kFloat32);
  EXPECT_TRUE(variable.trainable);
  EXPECT_EQ(variable.device, nullptr);
}

TEST(Defaults, OfCalls) {
  const layers::RnnCallOptions layer;
  EXPECT_TRUE(layer.time_major && layer.training);
  EXPECT_FALSE(layer.save || layer.every);
  EXPECT_EQ(layer.recompute, 0);
  const ops::RnnInputs in;
  EXPECT_TRUE(in.time_major && in.training && in.flags.zero_output_for_mask);
  EXPECT_FALSE(in.save || in.every || in.flags.reset_to_initial);
  EXPECT_EQ(in.recompute, 0);
  EXPECT_EQ(in.call, "rnn");
  const ops::CudnnCallOptions model;
  EXPECT_TRUE(model.time_major);
  EXPECT_FALSE(model.save);
  EXPECT_EQ(model.recompute, 0);
  EXPECT_TRUE(ops::CudnnFunctionOptions{}.is_training && ops::CudnnFunctionOptions{}.time_major);
  EXPECT_FALSE(ops::MatmulOptions{}.transpose_a || ops::MatmulOptions{}.transpose_b);
  EXPECT_FALSE(ops::ReduceOptions{}.keepdims || ops::ReduceOptions{}.axes);
  EXPECT_EQ(ops::StepRange{}.axis, 0);
  EXPECT_EQ(ops::StepRange{}.step, 1);
  EXPECT_EQ(ops::CtcOptions{}.blank, 0);
  EXPECT_TRUE(ops::CtcOptions{}.time_major);
}

TEST(Defaults, OfFilesAndSessions) {
  const SaverOptions saver;
  EXPECT_EQ(saver.graph, nullptr);
  EXPECT_FALSE(saver.only_saveables || saver.variables || saver.saveables || saver.by_name);
  EXPECT_EQ(saver.max_to_keep, 5);
  EXPECT_EQ(CheckpointManagerOptions{}.keep, 5);
  EXPECT_EQ(CheckpointManagerOptions{}.base, "model.ckpt");
  EXPECT_FALSE(RestoreOptions{}.refuse_unexpected);
  EXPECT_TRUE(TensorBundleOptions{}.verify_checksums);
  EXPECT_FALSE(OnnxExportOptions{}.lengths || OnnxExportOptions{}.states);
  EXPECT_EQ(ModelOptions{}.max_threads, 0);
  EXPECT_EQ(SessionOptions{}.max_threads, 1);
  const StreamLimits streams;
  EXPECT_EQ(streams.streams, 1);
  EXPECT_EQ(streams.batch, 0);
  EXPECT_EQ(streams.time, 1);
  EXPECT_EQ(streams.threads, 1);
  EXPECT_EQ(StreamStep{}.max_time, 1);
  EXPECT_TRUE(StreamStep{}.time_major);
  const ExplainedCall explained;
  EXPECT_EQ(explained.max_time, 1);
  EXPECT_EQ(explained.batch, 1);
  EXPECT_EQ(explained.recompute, 0);
  EXPECT_EQ(explained.device, nullptr);
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
