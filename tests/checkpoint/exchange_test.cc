// Layer to cells and back through a file, for every mode, direction and dtype.
#include "checkpoint/networks.h"
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using namespace testing;

// Both sides lie within the bound of what double arithmetic gives.
void expect_near(const std::vector<std::vector<Vector>>& exact, const Array& a, const Array& b,
                 const char* what) {
  std::int64_t i = 0;
  double worst = 0.0;
  for (const auto& plane : exact) {
    for (const Vector& row : plane) {
      for (const Bounded& value : row) {
        const double bound = border_error(value);
        const double x = element(a.view(), i), y = element(b.view(), i);
        ++i;
        EXPECT_LE(std::abs(x - value.value), bound) << what << " of the layer, element " << i;
        EXPECT_LE(std::abs(y - value.value), bound) << what << " of the cells, element " << i;
        EXPECT_LE(std::abs(x - y), 2 * bound);
        worst = std::max(worst, bound);
      }
    }
  }
  EXPECT_EQ(i, a.size());
  // A bound that allows everything shows nothing.
  // Errors of bidirectional relu networks grow with the norms of their weights.
  const double most = a.dtype() == DType::kBfloat16  ? 6.0
                      : a.dtype() == DType::kFloat16 ? 0.2
                                                     : 1e-4;
  EXPECT_LT(worst, most);
}

void expect_same(const NetworkData& data, const std::string& prefix, const Results& layer,
                 const Results& cells) {
  const BoundedResult exact = run_bounded(data, TensorBundleReader(prefix));
  expect_near(exact.output, layer.output, cells.output, "output");
  expect_near(exact.h, layer.h, cells.h, "h");
  if (data.spec.mode == RnnMode::kLstm) expect_near(exact.c, layer.c, cells.c, "c");
}

class Exchange : public ::testing::TestWithParam<std::tuple<RnnMode, Direction, DType>> {
 protected:
  RnnSpec spec() const {
    RnnSpec spec = rnn_spec(std::get<0>(GetParam()), 2, 5, 3, std::get<2>(GetParam()));
    spec.direction = std::get<1>(GetParam());
    return spec;
  }
  formats::TempFolder folder_;
};

TEST_P(Exchange, LayerToCells) {
  const NetworkData data = network_data(spec(), 4, {4, 0, 2});
  const std::string prefix = folder_ / "layer";
  Graph layer_graph, cell_graph;
  Results from_layer;
  {
    const Graph::AsDefault current(layer_graph);
    const auto layer = layer_of(data.spec);
    layer->build({4, 3, 3});
    from_layer = run_layer(*layer, data);
    Saver().write(prefix);
  }
  const Graph::AsDefault current(cell_graph);
  testing::CellNetwork cells(data.spec);
  cells.run(data);  // makes the variables
  Saver().restore(prefix);
  const TensorBundleReader file(prefix);
  for (const Variable& variable : cell_graph.variables()) {
    EXPECT_TRUE(same_bits(variable.to_host(), file.read(variable.name()))) << variable.name();
  }
  expect_same(data, prefix, from_layer, cells.run(data));
}

TEST_P(Exchange, CellsToLayer) {
  const NetworkData data = network_data(spec(), 4, {4, 0, 2});
  const std::string prefix = folder_ / "cells";
  Graph layer_graph, cell_graph;
  Results from_cells;
  {
    const Graph::AsDefault current(cell_graph);
    testing::CellNetwork cells(data.spec);
    cells.run(data);
    std::uint64_t seed = 100;
    for (const Variable& variable : cell_graph.variables()) {
      variable.assign(varied(variable.dtype(), variable.shape(), ++seed, 0.6).view());
    }
    from_cells = cells.run(data);
    Saver().write(prefix);
  }
  const Graph::AsDefault current(layer_graph);
  const auto layer = layer_of(data.spec);
  layer->build({-1, -1, 3});
  const std::string refused = thrown<ArgumentError>(
      [&] { Saver({.variables = {{layer->kernel()}}, .saveables = {{}}}).restore(prefix); });
  EXPECT_NE(refused.find("lacks 1 of the tensors that the model expects: "), std::string::npos);
  const Saver saver({.only_saveables = true});
  saver.restore(prefix, {.refuse_unexpected = true});
  const TensorBundleReader file(prefix);
  for (const auto& stored : layer->saveable()->specs()) {
    EXPECT_TRUE(same_bits(stored.tensor, file.read(stored.name))) << stored.name;
  }
  expect_same(data, prefix, run_layer(*layer, data), from_cells);
  // A default Saver wants the raw variable as well, as TensorFlow's does.
  const Array before = layer->kernel().to_host();
  EXPECT_EQ(thrown<ArgumentError>([&] { Saver().restore(prefix); }),
            "[Saver::restore] " + prefix +
                " lacks 1 of the tensors that the model expects: " + layer->kernel().name() +
                "; a Saver over saveables alone takes a network from its canonical tensors");
  EXPECT_TRUE(same_bits(before, layer->kernel().to_host()));
}

INSTANTIATE_TEST_SUITE_P(Networks, Exchange,
                         ::testing::Combine(::testing::Values(RnnMode::kLstm, RnnMode::kGru,
                                                              RnnMode::kRnnTanh, RnnMode::kRnnRelu),
                                            ::testing::Values(Direction::kUnidirectional,
                                                              Direction::kBidirectional),
                                            ::testing::Values(DType::kFloat16, DType::kBfloat16,
                                                              DType::kFloat32, DType::kFloat64)));

// Cells have no skip mode, but another layer has. Its two biases are equal, so halving their sum
// gives them back and every bit must be the same.
TEST(ExchangeSkip, LayerToLayer) {
  for (RnnSpec spec : all_specs()) {
    if (!spec.skips_input()) continue;
    SCOPED_TRACE(describe(spec));
    const formats::TempFolder folder;
    const std::string prefix = folder / "skip";
    const NetworkData data = network_data(spec, 3, {3, 1});
    Results before;
    Graph first, second;
    {
      const Graph::AsDefault current(first);
      const auto layer = layer_of(spec, constant_initializer(0.25));
      before = run_layer(*layer, data);
      Saver({.only_saveables = true}).write(prefix);
    }
    const Graph::AsDefault current(second);
    spec.input_mode = InputMode::kAutoSelect;
    const auto layer = layer_of(spec, constant_initializer(0.0));
    run_layer(*layer, data);
    layer->kernel().assign(Array(spec.dtype, layer->kernel().shape()).view());
    Saver({.only_saveables = true}).restore(prefix);
    const Results after = run_layer(*layer, data);
    EXPECT_TRUE(same_bits(before.output, after.output));
    EXPECT_TRUE(same_bits(before.h, after.h));
    EXPECT_TRUE(same_bits(before.c, after.c));
  }
}

// An explicit build puts the canonical names elsewhere than a build by the first call.
TEST(ExchangeSkip, NamesOfAnotherBuildAreMissing) {
  const formats::TempFolder folder;
  RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 2, 2);
  Graph first, second;
  {
    const Graph::AsDefault current(first);
    const auto layer = layer_of(spec);
    run_layer(*layer, network_data(spec, 1, {1}));
    Saver({.only_saveables = true}).write(folder / "implicit");
  }
  const Graph::AsDefault current(second);
  const auto layer = layer_of(spec);
  layer->build({1, 1, 2});
  const std::string refused =
      thrown<ArgumentError>([&] { Saver({.only_saveables = true}).restore(folder / "implicit"); });
  EXPECT_EQ(refused.rfind("[Saver::restore] " + (folder / "implicit") +
                              " lacks 6 of the tensors that the model expects: rnn/multi_rnn_cell/"
                              "cell_0/cudnn_compatible_gru_cell/gates/kernel, ",
                          0),
            0u)
      << refused;
  EXPECT_NE(refused.find("; not expected but there: cudnn_gru/rnn/multi_rnn_cell/"),
            std::string::npos)
      << refused;
}

}  // namespace
}  // namespace openrnn
