// What inspect, eval and train print, word for word.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/report/inspected.h"
#include "cli/report/layer_text.h"
#include "cli/report/progress.h"
#include "cli/report/series_report.h"

namespace openrnn::cli {
namespace {

template <class Call>
std::string printed(const Call& call) {
  testing::internal::CaptureStdout();
  call();
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

Inspected everything() {
  const RnnSpec lstm{.num_units = 3, .input_size = 2, .use_bias = false};
  const RnnSpec gru{.mode = RnnMode::kGru, .num_units = 3, .input_size = 2, .single_bias = true};
  Inspected found{.path = "file",
                  .kind = "a kind",
                  .checksums = Checksums::kNotVerified,
                  .tensors = {{"w", "float32", {2, 3}, 24}, {"longer name", "int64", {}, 8}},
                  .values = {{"none", std::monostate{}},
                             {"yes", true},
                             {"no", false},
                             {"whole", std::int64_t{-7}},
                             {"real", 0.5},
                             {"text", std::string("a\nb")},
                             {"few", std::vector<std::int64_t>{1, 2}},
                             {"eight", std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}},
                             {"many", std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9.5}},
                             {"words", std::vector<std::string>{"a", "b"}}},
                  .remarks = {{"network", "scope", "of a checkpoint"},
                              {"options", "", "some"},
                              {"note", "", "first"},
                              {"note", "", "second"}}};
  found.networks = {{.name = "enc",
                     .spec = lstm,
                     .parameters = 60,
                     .slots = {"m", "v"},
                     .tensors = {"w", "r"},
                     .has_state = true},
                    {.spec = gru, .parameters = 54, .tensors = {"k"}}};
  found.layers = {{"d", "dense", "dense of x:", {"k", "b"}}};
  found.not_understood = {"x", "y"};
  return found;
}

TEST(Inspect, AsText) {
  const Inspected found = everything();
  EXPECT_EQ(printed([&] { print_text(found); }),
            "tensor       dtype     shape                    bytes\n"
            "w            float32   [2, 3]                      24\n"
            "longer name  int64     []                           8\n"
            "2 tensors, 32 bytes in file, a kind, not verified\n"
            "none: none\nyes: true\nno: false\nwhole: -7\nreal: 0.5\ntext: 'a\\012b'\n"
            "few: [1, 2]\neight: [1, 2, 3, 4, 5, 6, 7, 8]\nmany: [1, 2, 3, 4, 5, 6, 7, 8, ... (9 "
            "values)]\nwords: ['a', 'b']\n"
            "network in enc: " +
                describe(found.networks[0].spec) +
                ", no biases, 60 parameters, with initial states, slots m, v\n"
                "  made from w, r\n"
                "network: " +
                describe(found.networks[1].spec) +
                ", one bias a gate, 54 parameters\n"
                "  made from k\n"
                "layer d: dense of x:\n"
                "of no network: x, y\n"
                "network in scope: of a checkpoint\noptions: some\nnote: first\nnote: second\n");
  Inspected none{.path = "f", .kind = "k", .tensors = {}, .values = {}, .remarks = {}};
  const std::string title =
      "tensor  dtype     shape                    bytes\n0 tensors, 0 bytes in ";
  EXPECT_EQ(printed([&] { print_text(none); }), title + "f, k, which has no checksums\n");
  none.checksums = Checksums::kRight;
  EXPECT_EQ(printed([&] { print_text(none); }), title + "f, k, every checksum is right\n");
}

TEST(Inspect, AsJson) {
  using nlohmann::json;
  const json found = json::parse(printed([] { print_json(everything()); }));
  EXPECT_EQ(found["path"], "file");
  EXPECT_EQ(found["kind"], "a kind");
  EXPECT_EQ(found["checksums"], "not verified");
  EXPECT_EQ(found["tensors"], json::parse(R"([
    {"name": "w", "dtype": "float32", "shape": [2, 3], "bytes": 24},
    {"name": "longer name", "dtype": "int64", "shape": [], "bytes": 8}])"));
  EXPECT_EQ(found["values"], json::parse(R"([
    {"name": "none", "value": null}, {"name": "yes", "value": true},
    {"name": "no", "value": false}, {"name": "whole", "value": -7}, {"name": "real", "value": 0.5},
    {"name": "text", "value": "a\nb"}, {"name": "few", "value": [1, 2]},
    {"name": "eight", "value": [1, 2, 3, 4, 5, 6, 7, 8]},
    {"name": "many", "value": [1, 2, 3, 4, 5, 6, 7, 8, 9.5]},
    {"name": "words", "value": ["a", "b"]}])"));
  ASSERT_EQ(found["networks"].size(), 3U);
  const json& network = found["networks"][0];
  EXPECT_EQ(network["scope"], "enc");
  EXPECT_EQ(network["biases_per_gate"], 0);
  EXPECT_EQ(network["parameters"], 60);
  EXPECT_EQ(network["initial_state"], true);
  EXPECT_EQ(network["slots"], (json{"m", "v"}));
  EXPECT_EQ(network["tensors"], (json{"w", "r"}));
  EXPECT_EQ(network["options"]["num_units"], 3);
  EXPECT_EQ(network["options"]["use_bias"], false);
  EXPECT_FALSE(found["networks"][1]["options"].contains("use_bias"));
  EXPECT_EQ(found["networks"][1]["biases_per_gate"], 1);
  EXPECT_EQ(found["networks"][2], (json{{"scope", "scope"}, {"text", "of a checkpoint"}}));
  EXPECT_EQ(found["layers"], json::parse(R"([{"name": "d", "kind": "dense", "text": "dense of x:",
                             "tensors": ["k", "b"]}])"));
  EXPECT_EQ(found["not_understood"], (json{"x", "y"}));
  EXPECT_EQ(found["notes"], (json{"first", "second"}));
  EXPECT_EQ(found["options"], "some");
}

TEST(Inspect, RemarksAreOfTheWholeFileUnlessAScopeIsNamed) {
  Inspected found{.path = "f", .kind = "k", .tensors = {}, .values = {}, .remarks = {}};
  found.add("note", "größer");
  EXPECT_TRUE(printed([&] { print_text(found); }).ends_with("\nnote: größer\n"));
  const std::string text = printed([&] { print_json(found); });
  EXPECT_NE(text.find("größer"), std::string::npos) << "letters stay themselves: " << text;
  EXPECT_EQ(nlohmann::json::parse(text)["notes"], (nlohmann::json{"größer"}));
}

TEST(Inspect, ALayerIsItsOptionsInputsAndOutputs) {
  const MappedLayer dense{.name = "d",
                          .kind = "dense",
                          .inputs = {{"a", 0}, {"b", 2}, {"c", 1}},
                          .options = {{"units", std::int64_t{3}},
                                      {"use_bias", false},
                                      {"trainable", true},  // the default
                                      {"activation", std::string("relu")}}};
  const std::vector<LayerValue> outputs{{DType::kFloat32, {-1, 3}, true},
                                        {DType::kFloat64, {2}, false}};
  EXPECT_EQ(text_of_layer(dense, outputs),
            "dense, activation relu, units 3, use_bias false of a, b (2), c (1): float32 [-1, 3] "
            "float64 [2], masked");
  const MappedLayer input{
      .name = "x", .kind = "input", .options = {{"shape", std::vector<std::int64_t>{-1, 2}}}};
  EXPECT_EQ(text_of_layer(input, {outputs[1]}), "input, shape [-1, 2]: float64 [2]");
  const MappedLayer states{
      .name = "r", .kind = "recurrent", .options = {{"initial_h", std::vector<double>{1, 2}}}};
  EXPECT_EQ(text_of_layer(states, {outputs[1]}), "recurrent, initial_h of 2 values: float64 [2]");
  const MappedLayer odd{
      .name = "d",
      .kind = "dense",
      .options = {{"activation", std::string("a\x1b\n") + std::string(500, 'b')}}};
  const std::string text = text_of_layer(odd, {outputs[1]});
  EXPECT_LT(text.size(), 300U);
  EXPECT_EQ(text.find_first_of("\x1b\n"), std::string::npos) << "a terminal would obey it";
}

TEST(SeriesReport, NamesEachColumnAndTheBetterForecast) {
  train::SeriesScore score{.model = {1, 20},
                           .last_value = {2, 30},
                           .seasonal = {3, 40},
                           .season = 12,
                           .model_total = 0.5,
                           .last_value_total = 2.0,
                           .seasonal_total = 1.0};
  const auto text = [&] { return printed([&] { print_series_score(score, {"a", "b"}); }); };
  const std::string titles = "column (rmse)                    model   naive: last value",
                    a = "a                                    1                   2",
                    b = "b                                   20                  30",
                    all = "all, normalised                    0.5                   2";
  EXPECT_EQ(text(), "rmse_normalised 0.5000\n" + titles + "    naive: 12 rows ago\n" + a +
                        "                     3\n" + b + "                    40\n" + all +
                        "                     1\n"
                        "model / better naive forecast: 0.500 (the model is better)\n");
  score.season = 0;
  score.model_total = 3.0;
  const std::string worse = "all, normalised                      3                   2";
  EXPECT_EQ(text(), "rmse_normalised 3.0000\n" + titles + "\n" + a + "\n" + b + "\n" + worse +
                        "\nmodel / better naive forecast: 1.500 (the naive forecast is better)\n");
  score.model_total = 2.0;
  EXPECT_TRUE(text().ends_with("naive forecast: 1.000 (the naive forecast is better)\n"));
  score.last_value_total = 0.0;
  EXPECT_EQ(text().find("better"), std::string::npos);
}

/// Of which a report asks for the metric of a loss alone.
struct DoubledTask final : train::Task {
  std::int64_t windows() const override { return 1; }
  Tensor loss(const train::DataPosition&) override { return {}; }
  std::int64_t items(const train::DataPosition&) const override { return 1; }
  double metric(double loss) const override { return 2.0 * loss; }
  std::string_view metric_name() const override { return "units"; }
  double validate(bool) override { return 0.0; }
  std::vector<Variable> variables() const override { return {}; }
  void save(Extras&) const override {}
  void load(const Extras&) override {}
};

// Without a terminal: a line at each validation and at the end; the loss is smoothed from the first
// step on.
TEST(Progress, PlainLines) {
  const DoubledTask task;
  Progress progress("units", "rows");
  const auto step = [&](std::int64_t number, double loss, std::optional<double> validation,
                        bool applied = true) {
    train::StepReport report;
    report.step = number;
    report.steps = 12;
    report.items = 5;
    report.result = train::StepResult(
        train::StepValues{.applied = applied, .gradient_norm = 1.0, .loss = loss});
    report.task = &task;
    report.validation = validation;
    testing::internal::CaptureStderr();
    progress.step(report);
    std::string said = testing::internal::GetCapturedStderr();
    // How fast is a matter of the machine.
    const std::size_t rate = said.find("  "), end = said.find(" rows/s");
    if (end != std::string::npos) said.replace(rate, end - rate, " R");
    return said;
  };
  EXPECT_EQ(step(10, 2.0, {}), "");
  EXPECT_EQ(step(11, 4.0, 7.0), "step 11/12 R rows/s  4.200 units  valid 7.000  left 0:00\n");
  EXPECT_EQ(step(12, 1.1, {}, false),
            "step 12/12 R rows/s  4.100 units  valid 7.000  left 0:00  (skipped: gradients not "
            "finite)\n");
}

}  // namespace
}  // namespace openrnn::cli
