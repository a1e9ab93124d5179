// A model from a checkpoint alone.
#include <filesystem>

#include "base/excerpt.h"
#include "openrnn/formats_model_file.h"
#include "openrnn/train_run.h"
#include "train/message.h"

namespace openrnn::train {

namespace {

namespace fs = std::filesystem;

template <class... Parts>
[[noreturn]] void refuse_run(const Parts&... parts) {
  throw ArgumentError(message("resolve_run", parts...));
}

std::string run_of_folder(const std::string& folder) {
  std::error_code ignored;
  if (const auto latest = latest_checkpoint(folder)) return *latest;
  const std::string inside = (fs::path(folder) / "variables" / "variables").string();
  if (fs::exists(fs::path(folder) / "saved_model.pb", ignored) && tensor_bundle_exists(inside)) {
    refuse_run("folder '", folder, "' is a SavedModel, expected the prefix of its checkpoint, '",
               inside, "'");
  }
  refuse_run("folder '", folder, "' holds no checkpoint, expected the output folder of a run");
}

/// The prefix of which `path` is a file: P of P.index and of P.data-00000-of-00001.
std::string prefix_of_file(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {};
  const std::string_view end = std::string_view(path).substr(dot);
  return end == ".index" || end.starts_with(".data-") ? path.substr(0, dot) : std::string();
}

/// Throws: ArgumentError unless all that says what the model is agrees.
void check_fits(const std::string& prefix, const RunConfig& config, const Vocabulary& vocabulary) {
  const auto wrong = [&](const auto&... parts) {
    throw ArgumentError(message("TrainedModel", "checkpoint '", prefix, "' has ", parts...));
  };
  const ModelConfig& model = config.model;
  if (config.task == "text") {
    if (vocabulary.size() == model.vocabulary && vocabulary.size() == model.outputs) return;
    wrong("a vocabulary of ", vocabulary.size(), " symbols and a model of ", model.vocabulary,
          " inputs and ", model.outputs, " outputs, expected as many of each");
  }
  const auto columns = static_cast<std::int64_t>(config.columns.size());
  if (columns == model.columns && columns == model.outputs) return;
  wrong(columns, " columns and a model of ", model.columns, " inputs and ", model.outputs,
        " outputs, expected as many of each");
}

}  // namespace

std::string resolve_run(const std::string& run) {
  std::error_code ignored;
  if (fs::is_directory(run, ignored)) return run_of_folder(run);
  if (tensor_bundle_exists(run)) return run;
  const std::string prefix = prefix_of_file(run);
  if (!prefix.empty() && tensor_bundle_exists(prefix)) {
    refuse_run("'", run, "' is one file of a checkpoint, expected its prefix, '", prefix, "'");
  }
  std::string fault = "' does not exist";
  if (fs::is_regular_file(run, ignored)) {
    fault = "' is " + identify_file(run).what + " and no checkpoint";
  } else if (fs::exists(run, ignored)) {
    fault = "' is no regular file";
  }
  refuse_run("'", run, fault, ", expected the output folder of a run or a checkpoint's prefix");
}

void check_size(const RunConfig& config, const TensorBundleReader& reader) {
  std::uint64_t bytes = 0;
  for (const TensorInfo& info : reader.tensors()) bytes += info.bytes;
  const auto product = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
  };
  const ModelConfig& model = config.model;
  const RnnSpec& network = model.network;
  const double least =
      product(network.num_units, network.hidden_size()) * static_cast<double>(network.num_layers) +
      product(model.vocabulary, model.embedding) + product(network.hidden_size(), model.outputs);
  if (least <= static_cast<double>(bytes)) return;
  throw ArgumentError(message("check_size", excerpt(reader.prefix()), " has ", bytes,
                              " bytes of tensors, expected more for a model of ",
                              network.num_layers, " layers of ", network.num_units,
                              " units, vocabulary ", model.vocabulary, " and ", model.outputs,
                              " outputs"));
}

TensorBundleReader open_run(const std::string& run) {
  for (std::string prefix = resolve_run(run);;) {
    try {
      return TensorBundleReader(prefix);
    } catch (const IoError&) {
      // A run that goes on removes an old checkpoint after it has named a newer one.
      std::string now = resolve_run(run);
      if (now == prefix) throw;
      prefix = std::move(now);
    }
  }
}

TrainedModel::TrainedModel(const std::string& run, const ArithmeticChoice& choice,
                           const Device* device)
    : TrainedModel(open_run(run), choice, device) {}

TrainedModel::TrainedModel(const TensorBundleReader& reader, const ArithmeticChoice& choice,
                           const Device* device)
    : prefix_(reader.prefix()), extras_(read_extras(reader)), graph_(std::make_unique<Graph>()) {
  if (!extras_.contains("config")) {
    throw ArgumentError(message("TrainedModel", "checkpoint '", prefix_,
                                "' has no openrnn/config and so does not say what model it is of, "
                                "expected one of a run of the tool, or the run's folder"));
  }
  config_ = run_config_from_json(extras_.get_string("config"));
  check_size(config_, reader);
  const Graph::AsDefault current(*graph_);
  if (config_.task == "text") {
    const auto codes = extras_.get_array("vocabulary", DType::kInt32, {-1}).as<std::int32_t>();
    vocabulary_ = Vocabulary(config_.level, std::vector<std::int32_t>(codes.begin(), codes.end()));
  }
  check_fits(prefix_, config_, vocabulary_);
  ComputeOptions& compute = config_.model.network.compute;
  compute.weights_dtype = choice.weights_dtype.value_or(WeightsDType::kNone);
  const bool stored = compute.weights_dtype != WeightsDType::kNone;
  compute.math = choice.math.value_or(stored ? Math::kFloat32 : compute.math);
  compute.device = device;
  model_ = std::make_unique<SequenceModel>(config_.model);
  SaverOptions options;
  options.graph = graph_.get();
  Saver(options).restore(reader);
}

TrainedModel::~TrainedModel() = default;

}  // namespace openrnn::train
