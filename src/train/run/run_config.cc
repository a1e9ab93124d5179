// The configuration of a run as JSON.
#include <nlohmann/json.hpp>
#include <set>

#include "base/excerpt.h"
#include "openrnn/train_run.h"
#include "train/data/fingerprint.h"
#include "train/message.h"
#include "train/run/network_options.h"

namespace openrnn::train {
namespace {

using nlohmann::json;

json json_of(const FieldValue& value) {
  return std::visit(
      [](const auto& given) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(given)>, std::monostate>) {
          return nullptr;
        } else {
          return given;
        }
      },
      value);
}

json model_json(const ModelConfig& model) {
  json to{{"vocabulary", model.vocabulary},
          {"embedding", model.embedding},
          {"columns", model.columns},
          {"outputs", model.outputs}};
  for (const NetworkOption& option : network_options()) {
    if (!option.stands_in(model.network)) continue;
    to[std::string(option.field->name)] = json_of(option.field->get(model.network));
  }
  return to;
}

json fit_json(const FitOptions& fit) {
  json to = {{"steps", fit.steps},
             {"schedule", std::string(to_string(fit.schedule.kind))},
             {"learning_rate", fit.schedule.learning_rate},
             {"warmup_steps", fit.schedule.warmup_steps},
             {"decay_steps", fit.schedule.decay_steps},
             {"decay_rate", fit.schedule.decay_rate},
             {"final_fraction", fit.schedule.final_fraction},
             {"clip_norm", fit.clip_norm},
             {"validate_every", fit.validate_every},
             {"patience", fit.patience}};
  // As network options: only where it says something, so that other files stay as they were.
  if (fit.micro_batches != 1) to["micro_batches"] = fit.micro_batches;
  return to;
}

// A number with a fraction or an exponent could lie outside of all integers.
std::int64_t integer(const json& from, const char* name) {
  const json& value = from.at(name);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  throw ArgumentError(message("run_config_from_json", name, " is ", excerpt(value.dump()),
                              ", expected a whole number"));
}

FieldValue value_from(const json& from) {
  if (from.is_null()) return {};
  if (from.is_boolean()) return from.get<bool>();
  if (from.is_number_integer()) return from.get<std::int64_t>();
  if (from.is_number()) return from.get<double>();
  if (from.is_array() && from.size() == 2) return from.get<std::array<double, 2>>();
  return from.get<std::string>();
}

/// Throws: ArgumentError for a key of a later version, without which the model is another one.
void check_keys(const json& from) {
  std::set<std::string_view> known{"vocabulary", "embedding", "columns", "outputs"};
  for (const NetworkOption& option : network_options()) known.insert(option.field->name);
  for (const auto& [key, value] : from.items()) {
    if (known.contains(key)) continue;
    throw ArgumentError(message("run_config_from_json", "the model has '", excerpt(key),
                                "', expected only what this version of the library knows"));
  }
}

ModelConfig model_from(const json& from) {
  check_keys(from);
  ModelConfig model;
  model.vocabulary = integer(from, "vocabulary");
  model.embedding = integer(from, "embedding");
  model.columns = integer(from, "columns");
  model.outputs = integer(from, "outputs");
  for (const NetworkOption& option : network_options()) {
    const std::string key(option.field->name);
    if (!option.required && !from.contains(key)) continue;
    option.field->put(model.network, value_from(from.at(key)));
  }
  return model;
}

FitOptions fit_from(const json& from) {
  FitOptions fit;
  fit.steps = integer(from, "steps");
  fit.schedule.kind = parse_schedule(from.at("schedule").get<std::string>());
  fit.schedule.learning_rate = from.at("learning_rate");
  fit.schedule.warmup_steps = integer(from, "warmup_steps");
  fit.schedule.decay_steps = integer(from, "decay_steps");
  fit.schedule.decay_rate = from.at("decay_rate");
  fit.schedule.final_fraction = from.at("final_fraction");
  fit.clip_norm = from.at("clip_norm");
  // Not in files of runs from before there was such an option.
  if (from.contains("micro_batches")) fit.micro_batches = integer(from, "micro_batches");
  fit.validate_every = integer(from, "validate_every");
  fit.patience = integer(from, "patience");
  return fit;
}

}  // namespace

std::string to_json(const RunConfig& config) {
  const json all{{"task", config.task},
                 {"rnn_mode", std::string(openrnn::to_string(config.model.network.mode))},
                 {"model", model_json(config.model)},
                 {"fit", fit_json(config.fit)},
                 {"optimizer", config.optimizer},
                 {"batch", config.batch},
                 {"seq_len", config.seq_len},
                 {"epochs", config.epochs},
                 {"level", std::string(to_string(config.level))},
                 {"columns", config.columns},
                 {"horizon", config.horizon},
                 {"to_sequence", config.to_sequence},
                 {"valid_fraction", config.valid_fraction},
                 {"input", config.input},
                 {"valid", config.valid},
                 {"data_hash", config.data_hash}};
  // A path need not be UTF-8; JSON must be.
  return all.dump(2, ' ', false, json::error_handler_t::replace);
}

RunConfig run_config_from_json(std::string_view text) {
  try {
    const json from = json::parse(text);
    RunConfig config;
    config.task = from.at("task");
    if (config.task != "text" && config.task != "series") {
      throw ArgumentError(message("run_config_from_json", "the task '", excerpt(config.task),
                                  "', expected text or series"));
    }
    config.model = model_from(from.at("model"));
    config.fit = fit_from(from.at("fit"));
    config.optimizer = from.at("optimizer");
    config.batch = integer(from, "batch");
    config.seq_len = integer(from, "seq_len");
    config.epochs = integer(from, "epochs");
    config.level = parse_text_level(from.at("level").get<std::string>());
    config.columns = from.at("columns").get<std::vector<std::string>>();
    config.horizon = integer(from, "horizon");
    config.to_sequence = from.at("to_sequence");
    config.valid_fraction = from.at("valid_fraction");
    config.input = from.at("input");
    config.valid = from.at("valid");
    config.data_hash = from.at("data_hash");
    return config;
  } catch (const json::exception& error) {
    throw ArgumentError(message("run_config_from_json", "not the configuration of a run: ",
                                excerpt(error.what()), ", expected what to_json gives"));
  }
}

SeriesOptions series_options(const RunConfig& config) {
  SeriesOptions options;
  options.window = config.seq_len;
  options.horizon = config.horizon;
  options.to_sequence = config.to_sequence;
  options.batch = config.batch;
  options.valid_fraction = config.valid_fraction;
  options.seed = config.model.seed();
  return options;
}

std::string fingerprint(std::string_view bytes) {
  Fingerprint all;
  all.add(bytes);
  return all.text();
}

}  // namespace openrnn::train
