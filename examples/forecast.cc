// A one-step forecaster of a series, compared with two baselines. forecast FILE.csv COLUMN [STEPS]
//
// The first four fifths of the rows train; each of the others is forecast from the 32 rows before
// it. The error measure is the root mean squared error, in the units of the file, of the last value
// seen (persistence), of the value one season earlier (seasonal naive; the season is the one that
// does best on the training rows) and of the network.
#include <openrnn/openrnn.h>

#include <iostream>

int main(int argc, char** argv) try {
  using namespace openrnn::train;
  if (argc < 3) throw openrnn::ArgumentError("usage: forecast FILE.csv COLUMN [STEPS]");
  const std::int64_t steps = argc > 3 ? std::stoll(argv[3]) : 600;

  const SeriesTable table = load_series(argv[1], {argv[2]});
  const SeriesWindows windows(table, {.window = 32, .batch = 16, .seed = 1});

  SequenceModel model({.network = {.num_units = 32, .training = {.dropout = 0.3, .seed = 1}},
                       .columns = 1,
                       .outputs = 1});
  SeriesTask task(model, windows, /*to_sequence=*/false);
  AdamOptimizer adam;
  const Schedule schedule{
      .kind = ScheduleKind::kCosine, .learning_rate = 1e-2, .decay_steps = steps};
  Fit fit(task, adam, {.steps = steps, .schedule = schedule});
  fit.run({[](const StepReport& report) {
    if (report.step % 100 == 0) {
      std::cout << "step " << report.step << ": loss " << report.metric() << '\n';
    }
    return true;
  }});

  const SeriesScore score = score_series(model, windows);
  std::cout << windows.valid_count() << " forecasts of '" << argv[2] << "', one row ahead\n"
            << "rmse of persistence: " << score.last_value[0] << '\n';
  if (score.season > 0) {
    std::cout << "rmse of the seasonal naive forecast (" << score.season
              << " rows): " << score.seasonal[0] << '\n';
  }
  std::cout << "rmse of the network: " << score.model[0] << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
