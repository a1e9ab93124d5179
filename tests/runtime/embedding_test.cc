// The page about embedding: its snippets stand here, compiled and run, and stand there as they do
// here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cassert>
#include <fstream>
#include <regex>
#include <sstream>

#include "openrnn/runtime.h"
#include "support/files/source_file.h"

namespace openrnn {
namespace {

std::vector<std::string> logged;
void log(const std::string& line) { logged.push_back(line); }

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform(-0.4, 0.5));
  return values;
}

std::shared_ptr<const openrnn::PackedModel> make_model() {
  const std::vector<float> buffer = numbers(100000, 1);
  // clang-format off
  // [snippet]
  openrnn::RnnSpec spec;
  spec.mode = openrnn::RnnMode::kLstm;
  spec.num_layers = 2;
  spec.num_units = 24;
  spec.input_size = 5;
  const openrnn::ConstArrayView params{buffer.data(), openrnn::DType::kFloat32, {openrnn::params_size(spec)}};
  const auto model = std::make_shared<const openrnn::PackedModel>(spec, params);
  // [end]
  // clang-format on
  return model;
}

/// The outputs of `steps` steps, one call each.
std::vector<float> step_by_step(const std::shared_ptr<const openrnn::PackedModel>& model,
                                const std::vector<float>& x) {
  const std::size_t steps = x.size() / 5;
  std::vector<float> y(steps * 24);
  // [snippet]
  openrnn::InferenceSession session(model);
  session.prepare(/*max_batch=*/1, /*max_time=*/1);
  std::vector<float> h(48), c(48);  // [2 layers, 1 row, 24 units], zeros
  for (std::size_t step = 0; step < steps; ++step) {
    openrnn::ForwardArgs args;
    args.max_time = args.batch = 1;
    args.x = x.data() + step * 5;
    args.y = y.data() + step * 24;
    args.h0 = args.hn = h.data();
    args.c0 = args.cn = c.data();
    session.run(args);
  }
  // [end]
  return y;
}

TEST(Embedding, WeightsMayBeStoredSmaller) {
  const std::vector<float> buffer = numbers(100000, 1);
  const auto model = make_model();
  const openrnn::RnnSpec spec = model->spec();
  const openrnn::ConstArrayView params{
      buffer.data(), openrnn::DType::kFloat32, {openrnn::params_size(spec)}};
  // [snippet]
  openrnn::RnnSpec small = spec;
  small.compute.weights_dtype = openrnn::WeightsDType::kInt8;
  const auto packed = std::make_shared<const openrnn::PackedModel>(small, params);
  assert(openrnn::math_kind(small) == "int8");
  // [end]
  const std::vector<float> x = numbers(35, 2);
  const std::vector<float> exact = step_by_step(model, x), close = step_by_step(packed, x);
  EXPECT_NE(exact, close);
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(exact[i], close[i], 0.05);
}

TEST(Embedding, ASessionStepsAndGivesEveryLayer) {
  const auto model = make_model();
  constexpr std::size_t steps = 7;
  const std::vector<float> x = numbers(steps * 5, 2);
  std::vector<float> y(steps * 24);
  openrnn::InferenceSession session(model);
  // [snippet]
  std::vector<float> first(steps * 24), last_cells(steps * 24);
  void* const outputs[] = {first.data(), nullptr};     // of layer 0 alone
  void* const cells[] = {nullptr, last_cells.data()};  // of layer 1 alone
  openrnn::ForwardArgs args;
  args.max_time = static_cast<std::int64_t>(steps);
  args.batch = 1;
  args.x = x.data();
  args.y = y.data();
  args.layer_outputs = outputs;
  args.layer_cells = cells;
  session.run(args);
  // [end]
  EXPECT_EQ(y, step_by_step(model, x));
  for (const std::vector<float>* filled : {&first, &last_cells}) {
    EXPECT_NE(filled->back(), 0.0F);
    EXPECT_NE(*filled, y);
  }
}

TEST(Embedding, ThreadsAreHeldTo) {
  const auto model = make_model();
  const openrnn::RnnSpec spec = model->spec();
  const std::vector<float> buffer = numbers(100000, 1);
  const openrnn::ConstArrayView params{
      buffer.data(), openrnn::DType::kFloat32, {openrnn::params_size(spec)}};
  // [snippet]
  const openrnn::ModelOptions one{.max_threads = 1};
  const auto quiet = std::make_shared<const openrnn::PackedModel>(spec, params, one);
  openrnn::InferenceSession wide(model, {.max_threads = 0});  // as many as pay off
  // [end]
  EXPECT_EQ(quiet->options().max_threads, 1);
  EXPECT_EQ(wide.options().max_threads, 0);
}

TEST(Embedding, StreamsStepTogether) {
  const auto model = make_model();
  const std::vector<float> x = numbers(10, 3);
  std::vector<float> y(48);
  // clang-format off
  // [snippet]
  openrnn::StreamPool pool(model, {.streams = 1000, .batch = 32});
  const openrnn::StreamId anna = pool.join();  // a zero state; or one that was read before
  const openrnn::StreamId ben = pool.join();

  const std::vector<openrnn::StreamId> ids{ben, anna};  // of this step, in any order
  pool.step({.ids = ids, .x = x.data(), .y = y.data()});  // x [1, 2, 5], y [1, 2, 24]

  std::vector<float> h(48), c(48);  // [2 layers, 24 units] of one stream
  pool.read(anna, h.data(), c.data());  // to keep, or to move to another pool
  pool.leave(anna);
  // [end]
  // clang-format on
  const std::vector<float> ben_alone = step_by_step(model, {x.begin(), x.begin() + 5});
  const std::vector<float> anna_alone = step_by_step(model, {x.begin() + 5, x.end()});
  EXPECT_TRUE(std::equal(ben_alone.begin(), ben_alone.end(), y.begin()));
  EXPECT_TRUE(std::equal(anna_alone.begin(), anna_alone.end(), y.begin() + 24));
  EXPECT_TRUE(std::equal(anna_alone.begin(), anna_alone.end(), h.begin() + 24));
  // [snippet]
  try {
    pool.step({.ids = ids, .x = x.data(), .y = y.data()});  // anna has left
  } catch (const openrnn::ArgumentError& error) {
    log(error.what());  // [step] ids[1] is stream ..., which is not open, expected ...
  }
  // [end]
  ASSERT_EQ(logged.size(), 1U);
  EXPECT_TRUE(std::regex_match(
      logged[0], std::regex(R"(\[step\] ids\[1\] is stream \d+, which is not open, expected .*)")))
      << logged[0];
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What stands between lines `begin` and `end`, each without the indentation of the first.
std::vector<std::string> blocks(const std::string& text, const std::string& begin,
                                const std::string& end) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  bool inside = false;
  std::size_t indent = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    const std::string words = line.substr(first);
    if (!inside && words == begin) {
      inside = true;
      indent = first;
      found.emplace_back();
    } else if (inside && words == end) {
      inside = false;
    } else if (inside) {
      found.back() += line.substr(std::min(indent, first)) + "\n";
    }
  }
  return found;
}

TEST(Embedding, ThePageShowsWhatRunsHere) {
  const auto here =
      blocks(read_text(source_file("tests/runtime/embedding_test.cc")), "// [snippet]", "// [end]");
  auto shown = blocks(read_text(source_file("docs/embedding.md")), "```cpp", "```");
  ASSERT_EQ(shown.size(), 7U);
  EXPECT_EQ(here.size(), shown.size());
  for (const std::string& snippet : shown) {
    EXPECT_NE(std::find(here.begin(), here.end(), snippet), here.end()) << snippet;
  }
}

}  // namespace
}  // namespace openrnn
