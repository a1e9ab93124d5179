#include "cli/bench/cells.h"

#include <fmt/core.h>

#include <array>

#include "cli/bench/passes.h"
#include "openrnn/spec_fields.h"

namespace openrnn::cli {
namespace {

struct Option {
  RnnMode mode;
  std::vector<std::pair<const char*, FieldValue>> fields;  // empty: none

  std::string name() const {
    std::string text;
    for (const auto& [field, value] : fields) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field, to_string(value));
    }
    return text.empty() ? "none" : text;
  }
};

std::vector<Option> options(std::int64_t units) {
  const auto name = [](const char* text) { return FieldValue(std::string(text)); };
  const RnnMode lstm = RnnMode::kLstm, gru = RnnMode::kGru;
  return {{lstm, {}},
          {lstm, {{"recurrent_activation", name("hard_sigmoid")}}},
          {lstm, {{"use_peepholes", true}}},
          {lstm, {{"cell_clip", std::array{-3.0, 3.0}}}},
          {lstm, {{"gate_clip", std::array{-3.0, 3.0}}}},
          {lstm, {{"coupled_gates", true}}},
          {lstm, {{"activation", name("softplus")}}},
          {lstm, {{"activation", name("elu")}}},
          {lstm, {{"layer_norm", name("products")}, {"layer_norm_cell", name("output")}}},
          {lstm, {{"layer_norm", name("gates")}, {"layer_norm_cell", name("carried")}}},
          {lstm, {{"zoneout", 0.1}, {"zoneout_cell", 0.1}}},
          {lstm, {{"recurrent_dropout", 0.25}}},
          {lstm, {{"recurrent_dropout", 0.25}, {"recurrent_dropout_form", name("candidate")}}},
          {gru, {}},
          {gru, {{"recurrent_activation", name("hard_sigmoid")}}},
          {gru, {{"reset_after", false}}},
          {gru, {{"layer_norm", name("products")}}},
          {gru, {{"layer_norm", name("split_products")}}},
          {gru, {{"num_proj", units / 2}}},
          {gru, {{"zoneout", 0.1}}}};
}

BenchConfig config_of(RnnMode mode, std::int64_t units, std::int64_t batch) {
  BenchConfig config;
  config.batch = batch;
  config.time = units < 512 ? 50 : 20;
  config.spec = {.mode = mode, .num_units = units, .input_size = units};
  config.name = fmt::format("{} U{} B{} T{}", mode == RnnMode::kLstm ? "LSTM" : "GRU", units, batch,
                            config.time);
  return config;
}

// Of b's pass to a's, by name.
double ratio_of(Passes& a, Passes& b, std::string_view pass) {
  const auto work_of = [pass](Passes& passes) {
    for (const Passes::Pass& one : passes.all()) {
      if (one.name == pass) return one.work;
    }
    throw StateError("[bench] a network without that pass");
  };
  return compare(work_of(a), work_of(b), 3).ratio;
}

}  // namespace

std::vector<CellCost> measure_cells(const std::string& only,
                                    const std::function<void(const CellCost&)>& report) {
  std::vector<CellCost> costs;
  for (const std::int64_t units : {32, 128, 256, 512}) {
    for (const std::int64_t batch : {1, 16, 64}) {
      for (const Option& option : options(units)) {
        const BenchConfig plain = config_of(option.mode, units, batch);
        BenchConfig with = plain;
        for (const auto& [field, value] : option.fields) rnn_field(field).put(with.spec, value);
        CellCost cost{plain.name, option.name()};
        if (fmt::format("{} {}", cost.config, cost.option).find(only) == std::string::npos) {
          continue;
        }
        Passes a(plain), b(with);
        cost.forward_ratio = ratio_of(a, b, "forward");
        cost.training_ratio = ratio_of(a, b, "forward_backward");
        report(cost);
        costs.push_back(std::move(cost));
      }
    }
  }
  return costs;
}

}  // namespace openrnn::cli
