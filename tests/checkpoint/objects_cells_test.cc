// Layer to cells and cells to layer through an object-based checkpoint.
#include "checkpoint/networks.h"
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using namespace testing;
using formats::TempFolder;
using testing::thrown;

struct Cells {
  std::vector<std::shared_ptr<RnnCell>> fw, bw;
  std::shared_ptr<MultiRNNCell> stack;

  explicit Cells(const RnnSpec& spec) {
    CompatibleCellOptions options;
    options.num_units = spec.num_units;
    options.dtype = spec.dtype;
    options.num_proj = spec.num_proj;
    options.kernel_initializer = random_uniform_initializer(-1.0, 1.0);
    for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
      options.seed = 17 + layer;
      fw.push_back(make_compatible_cell(spec.mode, options));
      options.seed = 29 + layer;
      bw.push_back(make_compatible_cell(spec.mode, options));
    }
    const Tensor x(varied(spec.dtype, {2, 1, spec.input_size}, 3).view());
    if (spec.num_dirs() == 1) {
      stack = std::make_shared<MultiRNNCell>(fw);
      dynamic_rnn(*stack, x, {.dtype = spec.dtype});
    } else {
      stack_bidirectional_dynamic_rnn(fw, bw, x, {.dtype = spec.dtype});
    }
  }

  /// Under the names that a layer has.
  Trackable trackable() const {
    if (stack) return static_cast<const Layer&>(*stack);
    NamedTrackables children;
    for (std::size_t i = 0; i < fw.size(); ++i) {
      const Layer &forward = *fw[i], &backward = *bw[i];
      children.emplace_back("cells_fw-" + std::to_string(i), forward);
      children.emplace_back("cells_bw-" + std::to_string(i), backward);
    }
    return children;
  }
};

std::unique_ptr<layers::CudnnRnn> projected(const RnnSpec& spec) {
  auto layer = layers::make_cudnn_rnn({.network = {.mode = spec.mode,
                                                   .num_layers = spec.num_layers,
                                                   .num_units = spec.num_units,
                                                   .direction = spec.direction,
                                                   .dtype = spec.dtype,
                                                   .num_proj = spec.num_proj,
                                                   .training = {.seed = 5}},
                                       .bias_initializer = random_uniform_initializer(-1.0, 1.0)});
  layer->build({-1, -1, spec.input_size});
  return layer;
}

// The tensors that the names of the layer's saveable have among a graph's variables.
void expect_equal(const layers::CudnnRnn& layer, const Graph& cells) {
  for (const SaveableObject::Spec& spec : layer.saveable()->specs()) {
    const Array value = cells.variable(spec.name).to_host();
    EXPECT_TRUE(same_bits(spec.tensor, value)) << spec.name;
    bool varies = false;
    for (std::int64_t i = 0; i < value.size(); ++i) varies |= element(value.view(), i) != 0.0;
    EXPECT_TRUE(varies) << spec.name;
  }
}

std::vector<RnnSpec> cell_specs() {
  std::vector<RnnSpec> specs;
  for (RnnSpec spec : all_specs()) {
    if (spec.skips_input()) continue;
    for (const std::int64_t num_layers : {1, 2}) {
      spec.num_layers = num_layers;
      specs.push_back(spec);
    }
  }
  return specs;
}

TEST(ObjectCells, LayerToCells) {
  const TempFolder folder;
  for (const RnnSpec& spec : cell_specs()) {
    SCOPED_TRACE(describe(spec));
    Graph layer_graph, cell_graph;
    std::unique_ptr<layers::CudnnRnn> layer;
    {
      const Graph::AsDefault current(layer_graph);
      layer = projected(spec);
    }
    const Graph::AsDefault current(cell_graph);
    const Cells cells(spec);
    Checkpoint({{"net", *layer}}).write(folder / "a");
    Checkpoint({{"net", cells.trackable()}}).read(folder / "a").assert_consumed();
    expect_equal(*layer, cell_graph);
  }
}

TEST(ObjectCells, CellsToLayer) {
  const TempFolder folder;
  for (const RnnSpec& spec : cell_specs()) {
    SCOPED_TRACE(describe(spec));
    Graph layer_graph, cell_graph;
    std::unique_ptr<layers::CudnnRnn> layer;
    {
      const Graph::AsDefault current(layer_graph);
      layer = projected(spec);
    }
    const Graph::AsDefault current(cell_graph);
    const Cells cells(spec);
    for (const Variable& variable : cell_graph.variables()) {
      variable.assign(varied(spec.dtype, variable.shape(), variable.leaf_id()).view());
    }
    Checkpoint({{"net", cells.trackable()}}).write(folder / "a");
    Checkpoint({{"net", *layer}}).read(folder / "a").assert_consumed();
    expect_equal(*layer, cell_graph);
  }
}

// A layer of one layer stands for the bare cell as well, and a wrapper names its cell.
TEST(ObjectCells, ABareCellAndAWrappedOne) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 5, 3);
  const auto layer = projected(spec);
  CompatibleCellOptions options;
  options.num_units = 5;
  const auto cell = make_compatible_cell(RnnMode::kGru, options);
  DropoutWrapper wrapper(cell, {.output_keep_prob = 0.5});
  wrapper(Tensor(varied(DType::kFloat32, {2, 3}, 1).view()),
          wrapper.zero_state(2, DType::kFloat32));
  const Layer &bare = *cell, &wrapped = wrapper;
  Checkpoint({{"net", *layer}}).write(folder / "a");
  Checkpoint({{"net", bare}}).read(folder / "a").assert_consumed();
  const auto specs = layer->saveable()->specs();
  const std::vector<Variable> found = cell->variables();
  ASSERT_EQ(found.size(), specs.size());
  for (const Variable& variable : found) {
    const auto same = [&](const SaveableObject::Spec& one) {
      return one.name.ends_with(variable.name()) && same_bits(one.tensor, variable.to_host());
    };
    EXPECT_EQ(std::count_if(specs.begin(), specs.end(), same), 1) << variable.name();
  }
  Checkpoint({{"net", wrapped}}).write(folder / "wrapped");
  EXPECT_TRUE(TensorBundleReader(folder / "wrapped")
                  .contains("net/cell/gates.Skernel/.ATTRIBUTES/VARIABLE_VALUE"));
}

// Cells have no skip mode: their kernel has rows for inputs, the layer's has none.
TEST(ObjectCells, CellsRefuseALayerThatSkipsItsInput) {
  const TempFolder folder;
  Graph layer_graph, cell_graph;
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 4, 4);
  {
    const Graph::AsDefault current(layer_graph);
    layers::CudnnLSTM layer({.num_units = 4, .input_mode = InputMode::kSkipInput});
    layer.build({1, 1, 4});
    Checkpoint({{"net", layer}}).write(folder / "a");
  }
  const Graph::AsDefault current(cell_graph);
  const Cells cells(spec);
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Checkpoint({{"net", cells.trackable()}}).read(folder / "a");
            }),
            "[Checkpoint::read] " + (folder / "a") +
                ": net/cell-0/kernel is float32 [4, 16], expected float32 [8, 16]");
}

}  // namespace
}  // namespace openrnn
