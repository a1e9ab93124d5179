// A model trained on one device is the model trained on another, and goes on there.
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/tagged_device.h"
#include "support/text_runs.h"

namespace openrnn::train {
namespace {

Text small_text() {
  const char* const words[] = {"one ", "two ", "three, ", "four\n", "five ", "six; "};
  return text_of_words(words, 600, 100);
}

struct Choice {
  RnnMode mode = RnnMode::kLstm;
  DType dtype = DType::kFloat32;
  std::string optimizer = "adam";
  std::int64_t embedding = 5;
};

/// One run in a graph of its own: embedding, dropout, clipping, a checkpoint's worth of state.
struct Trial {
  Trial(const Choice& choice, const Device& device) : current(graph), text(small_text()) {
    ModelConfig config;
    config.network.mode = choice.mode;
    config.network.num_layers = 2;
    config.network.num_units = 7;
    config.embedding = choice.embedding;
    config.vocabulary = config.outputs = text.vocabulary.size();
    config.network.training.dropout = 0.3;
    config.network.dtype = choice.dtype;
    config.network.training.seed = 11;
    config.network.compute.device = &device;
    model = std::make_unique<SequenceModel>(config);
    task = std::make_unique<TextTask>(*model, text, TextTask::Options{.batch = 3, .seq_len = 17});
    optimizer = make_optimizer(choice.optimizer, 0.01);
    FitOptions fit_options;
    fit_options.steps = 24;
    fit_options.clip_norm = 0.5;
    fit_options.validate_every = 8;
    fit = std::make_unique<Fit>(*task, *optimizer, fit_options);
  }
  void run_to(std::int64_t stop) {
    fit->run({[stop](const StepReport& report) { return report.step < stop; }});
  }
  void save(const std::string& prefix) const {
    Extras extras;
    fit->save(extras);
    Saver().write(prefix, extras);
  }
  Bytes bytes() const { return bytes_of(graph); }

  Graph graph;
  Graph::AsDefault current;
  Text text;
  std::unique_ptr<SequenceModel> model;
  std::unique_ptr<TextTask> task;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Fit> fit;
};

Bytes whole_run(const Choice& choice, const Device& device) {
  Trial run(choice, device);
  run.run_to(24);
  return run.bytes();
}

const Device& cpu() { return cpu_device(); }
const Device& other() { return testing::test_device(); }

TEST(Devices, TrainToTheSameBits) {
  for (const Choice& choice :
       {Choice{}, Choice{.mode = RnnMode::kGru, .dtype = DType::kFloat64},
        Choice{.mode = RnnMode::kRnnTanh, .optimizer = "momentum", .embedding = 0},
        Choice{.dtype = DType::kFloat16, .optimizer = "rmsprop"},
        Choice{.mode = RnnMode::kRnnRelu, .optimizer = "adagrad"}}) {
    SCOPED_TRACE(choice.optimizer);
    EXPECT_EQ(whole_run(choice, other()), whole_run(choice, cpu()));
  }
}

TEST(Devices, KeepWeightsAndSlotsAndLeaveScalarsToTheHost) {
  const Trial run({.dtype = DType::kFloat16}, other());
  std::vector<std::string> of_host;
  for (const Variable& variable : run.graph.variables()) {
    if (&variable.device() == &cpu()) {
      of_host.push_back(variable.name());
    } else {
      EXPECT_EQ(&variable.device(), &other()) << variable.name();
    }
  }
  EXPECT_EQ(of_host, (std::vector<std::string>{"beta1_power", "beta2_power", "loss_scale",
                                               "loss_scale_good_steps", "global_step"}));
}

TEST(Devices, GoOnWithTheCheckpointsOfOthers) {
  const std::string prefix =
      ::testing::TempDir() + "openrnn_devices_" + std::to_string(::getpid()) + ".ckpt";
  const Choice choice{};
  const Bytes expected = whole_run(choice, cpu());
  const std::vector<const Device*> devices{&cpu(), &other(), &testing::test_device(1), &cpu()};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Trial run(choice, *devices[i]);
    if (i > 0) run.fit->load(Saver().restore(prefix));
    run.run_to(static_cast<std::int64_t>(6 * (i + 1)));
    run.save(prefix);
    if (i + 1 == devices.size()) {
      EXPECT_EQ(run.bytes(), expected);
    }
  }
  remove_tensor_bundle(prefix);
}

TEST(Devices, ScoreAndSampleTheSame) {
  Trial here({}, cpu()), there({}, other());
  const TextScore a = score_text(*here.model, here.text.vocabulary, here.text.valid);
  const TextScore b = score_text(*there.model, there.text.vocabulary, there.text.valid);
  EXPECT_EQ(a.bits, b.bits);
  const SampleOptions options{.symbols = 40, .seed = 9};
  EXPECT_EQ(sample_text(*here.model, here.text.vocabulary, options),
            sample_text(*there.model, there.text.vocabulary, options));
}

TEST(Devices, SeriesTrainToTheSameBits) {
  SeriesTable table;
  table.names = {"a", "b"};
  table.values = Array(DType::kFloat64, {80, 2});
  RandomStream random(5);
  for (double& x : table.values.as<double>()) x = random.uniform(-1.0, 1.0);
  const auto run = [&](const Device& device, bool to_sequence) {
    SeriesOptions options;
    options.window = 9;
    options.batch = 4;
    options.to_sequence = to_sequence;
    const SeriesWindows windows(table, options);
    Graph graph;
    const Graph::AsDefault current(graph);
    ModelConfig config;
    config.network.mode = RnnMode::kGru;
    config.network.num_units = 6;
    config.columns = config.outputs = 2;
    config.network.compute.device = &device;
    SequenceModel model(config);
    SeriesTask task(model, windows, to_sequence);
    const auto optimizer = make_optimizer("sgd", 0.1);
    FitOptions fit_options;
    fit_options.steps = 7;
    Fit(task, *optimizer, fit_options).run();
    return score_series(model, windows).model;
  };
  for (const bool to_sequence : {false, true}) {
    EXPECT_EQ(run(other(), to_sequence), run(cpu(), to_sequence));
  }
}

TEST(Optimizer, TakesGradientsOfAnotherDevice) {
  const auto step = [](const Device& of_gradient) {
    Graph graph;
    const Graph::AsDefault current(graph);
    const float start[] = {1.0F, -2.0F, 0.5F}, slope[] = {0.25F, 0.75F, -3.0F};
    const Variable variable("x", Array(ConstArrayView{start, DType::kFloat32, {3}}), true,
                            &other());
    AdamOptimizer optimizer(0.1);
    std::vector<DeviceArray> gradients{
        DeviceArray::from_host(of_gradient, {slope, DType::kFloat32, {3}})};
    clip_by_global_norm(gradients, 0.5);
    optimizer.apply_gradients(gradients, {variable});
    const Array value = variable.to_host();
    return std::vector<float>(value.as<float>().begin(), value.as<float>().end());
  };
  EXPECT_EQ(step(cpu()), step(other()));
}

TEST(Clip, TakesGradientsOfTwoDevices) {
  const float first[] = {3.0F, 0.0F}, second[] = {-4.0F}, third[] = {12.0F};
  std::vector<DeviceArray> gradients{
      DeviceArray::from_host(cpu(), {first, DType::kFloat32, {2}}), DeviceArray(),
      DeviceArray::from_host(other(), {second, DType::kFloat32, {1}}),
      DeviceArray::from_host(cpu(), {third, DType::kFloat32, {1}})};
  EXPECT_DOUBLE_EQ(clip_by_global_norm(gradients, 6.5), 13.0);
  EXPECT_FLOAT_EQ(gradients[0].to_host().as<float>()[0], 1.5F);
  EXPECT_FLOAT_EQ(gradients[2].to_host().as<float>()[0], -2.0F);
  EXPECT_FLOAT_EQ(gradients[3].to_host().as<float>()[0], 6.0F);
  EXPECT_EQ(&gradients[2].device(), &other());
}

TEST(TrainedModel, RunsOnTheDeviceThatIsNamed) {
  const std::string folder =
      ::testing::TempDir() + "openrnn_trained_devices_" + std::to_string(::getpid());
  Trial trial({}, other());
  trial.run_to(2);
  RunConfig config;
  config.model = trial.model->config();
  Extras extras;
  extras.set_string("config", to_json(config));
  const auto& codes = trial.text.vocabulary.codes();
  extras.set("vocabulary", Array::of<std::int32_t>({static_cast<std::int64_t>(codes.size())},
                                                   std::span<const std::int32_t>(codes)));
  CheckpointManager manager(folder, {});
  const Saver saver;
  manager.save(saver, 2, extras);
  EXPECT_EQ(to_json(config).find("device"), std::string::npos);
  TrainedModel here(folder, {}, &cpu()), there(folder, {}, &other());
  EXPECT_EQ(&here.model().rnn().device(), &cpu());
  EXPECT_EQ(&there.model().rnn().kernel().device(), &other());
  EXPECT_EQ(score_text(here.model(), here.vocabulary(), trial.text.valid).bits,
            score_text(there.model(), there.vocabulary(), trial.text.valid).bits);
}

}  // namespace
}  // namespace openrnn::train
