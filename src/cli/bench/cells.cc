#include "cli/bench/cells.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "cli/bench/passes.h"
#include "openrnn/spec_fields.h"

namespace openrnn::cli {
namespace {

struct Option {
  RnnMode mode;
  const char* field;  // empty: none
  FieldValue value;
};

std::vector<Option> options() {
  const auto name = [](const char* text) { return FieldValue(std::string(text)); };
  return {{RnnMode::kLstm, "", {}},
          {RnnMode::kLstm, "recurrent_activation", name("hard_sigmoid")},
          {RnnMode::kLstm, "use_peepholes", true},
          {RnnMode::kLstm, "cell_clip", std::array{-3.0, 3.0}},
          {RnnMode::kLstm, "gate_clip", std::array{-3.0, 3.0}},
          {RnnMode::kLstm, "coupled_gates", true},
          {RnnMode::kLstm, "activation", name("softplus")},
          {RnnMode::kLstm, "activation", name("elu")},
          {RnnMode::kGru, "", {}},
          {RnnMode::kGru, "recurrent_activation", name("hard_sigmoid")},
          {RnnMode::kGru, "reset_after", false}};
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

// The best of three, since a machine in use is only ever slower.
double seconds_at_best(const std::function<void()>& work) {
  double best = seconds_of(work);
  for (int again = 0; again < 2; ++again) best = std::min(best, seconds_of(work));
  return best;
}

// Of b's pass to a's, by name.
double ratio_of(Passes& a, Passes& b, std::string_view pass) {
  constexpr int kRounds = 9;
  const auto work_of = [pass](Passes& passes) {
    for (const Passes::Pass& one : passes.all()) {
      if (one.name == pass) return one.work;
    }
    throw StateError("[bench] a network without that pass");
  };
  const auto first = work_of(a), second = work_of(b);
  first();
  second();
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    const double before = seconds_at_best(first);
    ratios.push_back(seconds_at_best(second) / before);
  }
  return median(ratios);
}

}  // namespace

std::vector<CellCost> measure_cells(const std::string& only,
                                    const std::function<void(const CellCost&)>& report) {
  std::vector<CellCost> costs;
  for (const std::int64_t units : {32, 128, 256, 512}) {
    for (const std::int64_t batch : {1, 16, 64}) {
      for (const Option& option : options()) {
        const BenchConfig plain = config_of(option.mode, units, batch);
        BenchConfig with = plain;
        const std::string field = option.field;
        if (!field.empty()) rnn_field(field).put(with.spec, option.value);
        CellCost cost{plain.name, field.empty()
                                      ? "none"
                                      : fmt::format("{} {}", field, to_string(option.value))};
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
