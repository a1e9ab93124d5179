// Every class of cells by table: configurations, copies, zero states, recorded steps and loops.
#include "cells/support.h"
#include "openrnn/cells_layer_norm.h"
#include "support/tagged_device.h"

namespace openrnn {
namespace {

using namespace testing;

constexpr std::int64_t kUnits = 4, kDepth = 3, kBatch = 2;

struct CellClass {
  std::string name;
  std::function<std::shared_ptr<RnnCell>()> make;
};

template <class Cell, class Options>
CellClass of_class(std::string name, const Options& options) {
  return {std::move(name), [options] { return std::make_shared<Cell>(options); }};
}

// Each class with what it may have besides.
std::vector<CellClass> classes() {
  CompatibleCellOptions projecting = units(kUnits);
  projecting.num_proj = 2;
  const auto inner = [] { return std::make_shared<CudnnCompatibleGRUCell>(units(kUnits)); };
  return {
      of_class<CudnnCompatibleLSTMCell>("CudnnCompatibleLSTMCell", units(kUnits)),
      of_class<CudnnCompatibleLSTMCell>("CudnnCompatibleLSTMCell", projecting),
      of_class<CudnnCompatibleGRUCell>("CudnnCompatibleGRUCell", units(kUnits)),
      of_class<BasicRNNCell>("BasicRNNCell", units(kUnits)),
      {"BasicRNNCell", [] { return std::make_shared<BasicRNNCell>(units(kUnits), ops::sigmoid); }},
      of_class<LSTMCell>("LSTMCell", LSTMCellOptions{.num_units = kUnits}),
      of_class<LSTMCell>("LSTMCell", LSTMCellOptions{.num_units = kUnits,
                                                     .use_peepholes = true,
                                                     .cell_clip = 0.25,
                                                     .num_proj = 3,
                                                     .proj_clip = 0.125,
                                                     .forget_bias = 0.5,
                                                     .activation = ops::sigmoid}),
      of_class<BasicLSTMCell>("BasicLSTMCell",
                              BasicLSTMCellOptions{.num_units = kUnits, .forget_bias = -0.5}),
      of_class<GRUCell>("GRUCell", GRUCellOptions{.num_units = kUnits}),
      of_class<GRUCell>("GRUCell", GRUCellOptions{.num_units = kUnits, .activation = ops::relu}),
      of_class<LayerNormBasicLSTMCell>("LayerNormBasicLSTMCell",
                                       LayerNormBasicLSTMCellOptions{.num_units = kUnits}),
      of_class<LayerNormBasicLSTMCell>(
          "LayerNormBasicLSTMCell",
          LayerNormBasicLSTMCellOptions{
              .num_units = kUnits, .forget_bias = 0.5, .layer_norm = false}),
      {"MultiRNNCell",
       [inner] {
         return std::make_shared<MultiRNNCell>(std::vector<std::shared_ptr<RnnCell>>{
             inner(), std::make_shared<CudnnCompatibleLSTMCell>(units(3))});
       }},
      {"DropoutWrapper",
       [inner] { return std::make_shared<DropoutWrapper>(inner(), DropoutWrapperOptions{}); }},
  };
}

CellState states_of(const RnnCell& cell, std::int64_t batch = kBatch) {
  CellState state;
  for (const CellStatePart& part : cell.step_state()) {
    state.push_back(varied({batch, part.size}, 9 + state.size()));
  }
  return state;
}

void expect_same(const CellResult& found, const CellResult& wanted) {
  EXPECT_TRUE(same(found.output, wanted.output));
  ASSERT_EQ(found.state.size(), wanted.state.size());
  for (std::size_t i = 0; i < wanted.state.size(); ++i) {
    EXPECT_TRUE(same(found.state[i], wanted.state[i])) << i;
  }
}

TEST(CellClasses, CopiesStepAsTheirOriginals) {
  for (const CellClass& one : classes()) {
    SCOPED_TRACE(one.name);
    const OwnGraph own;
    const auto cell = one.make();
    const Tensor x = varied({kBatch, kDepth});
    const CellResult wanted = (*cell)(x, states_of(*cell));
    // Biases and diagonals that are not all alike.
    for (const Variable& weight : cell->weights()) {
      weight.assign(varied(weight.shape(), 20 + weight.name().size()).to_host().view());
    }
    const CellResult changed = (*cell)(x, states_of(*cell));
    EXPECT_FALSE(same(changed.output, wanted.output));
    const std::size_t variables = own.graph.variables().size();
    const auto copy = std::dynamic_pointer_cast<RnnCell>(cell->copy());
    ASSERT_TRUE(copy);
    const Layer &made = *copy, &original = *cell;
    EXPECT_TRUE(typeid(made) == typeid(original));
    EXPECT_EQ(copy->state_size(), cell->state_size());
    EXPECT_EQ(copy->output_size(), cell->output_size());
    expect_same((*copy)(x, states_of(*cell)), changed);
    EXPECT_EQ(own.graph.variables().size(), variables);
    EXPECT_EQ(copy->weights().size(), cell->weights().size());
    EXPECT_EQ(copy->name(), cell->name());
    // It was built for that depth, as its original.
    if (dynamic_cast<const VariableCell*>(cell.get())) {
      EXPECT_EQ(thrown<ArgumentError>([&] {
                  (*copy)(varied({kBatch, 7}), states_of(*cell));
                }),
                "[" + one.name + "] inputs have depth 7, expected 3 as the cell was built for");
      EXPECT_EQ(copy->input_spec()->axes.at(-1), kDepth);
      EXPECT_EQ(copy->input_spec()->ndim, 2U);
    }
  }
}

TEST(CellClasses, StepsAndLoopsAreRecorded) {
  for (const CellClass& one : classes()) {
    SCOPED_TRACE(one.name);
    const OwnGraph own;
    const auto cell = one.make();
    const CellState start = states_of(*cell);
    const Tensor x = varied({kBatch, kDepth}), in = Input({-1, kDepth});
    std::vector<Tensor> inputs{in}, values{x};
    for (const Tensor& state : start) {
      inputs.push_back(Input({-1, state.shape()[1]}));
      values.push_back(state);
    }
    const CellResult made = (*cell)(in, {inputs.begin() + 1, inputs.end()});
    std::vector<Tensor> outputs{made.output};
    outputs.insert(outputs.end(), made.state.begin(), made.state.end());
    EXPECT_EQ(made.output.shape(), (Shape{-1, cell->output_size()}));
    Model model(inputs, outputs);
    const std::vector<Tensor> found = model(values);
    expect_same({found[0], {found.begin() + 1, found.end()}}, (*cell)(x, start));
    // A loop of them, on values, recorded, and step by step.
    const Tensor steps = varied({5, kBatch, kDepth}, 3), open = Input({-1, -1, kDepth});
    DynamicRnnOptions options;
    options.initial_state = start;
    options.time_major = true;
    const DynamicRnnResult direct = dynamic_rnn(*cell, steps, options);
    const DynamicRnnResult loop = dynamic_rnn(*cell, open, options);
    std::vector<Tensor> results{loop.outputs};
    results.insert(results.end(), loop.state.begin(), loop.state.end());
    Model looped({open}, results);
    const std::vector<Tensor> replayed = looped({steps});
    expect_same({replayed[0], {replayed.begin() + 1, replayed.end()}},
                {direct.outputs, direct.state});
    CellState state = start;
    for (const Tensor& step : ops::unstack(steps)) state = (*cell)(step, state).state;
    for (std::size_t i = 0; i < state.size(); ++i) {
      for (std::int64_t k = 0; k < state[i].value().size(); ++k) {
        EXPECT_NEAR(element(state[i].to_host().view(), k),
                    element(direct.state[i].to_host().view(), k), 1e-5);
      }
    }
  }
}

TEST(CellClasses, ZeroStatesAreOfTheirSizes) {
  for (const CellClass& one : classes()) {
    SCOPED_TRACE(one.name);
    const OwnGraph own;
    const auto cell = one.make();
    const std::vector<std::int64_t> sizes = cell->state_size();
    for (const DType dtype : {DType::kFloat16, DType::kFloat64}) {
      for (const std::int64_t batch : {0, 3}) {
        const CellState zero = cell->zero_state(batch, dtype);
        ASSERT_EQ(zero.size(), sizes.size());
        for (std::size_t i = 0; i < zero.size(); ++i) {
          EXPECT_EQ(zero[i].dtype(), dtype);
          EXPECT_EQ(zero[i].shape(), (Shape{batch, sizes[i]}));
          for (std::int64_t k = 0; k < batch * sizes[i]; ++k) {
            EXPECT_EQ(element(zero[i].to_host().view(), k), 0.0);
          }
        }
      }
    }
    EXPECT_EQ(thrown<ArgumentError>([&] { cell->zero_state(-1, DType::kFloat32); }),
              "[zero_state] batch_size -1, expected 0 or more");
    EXPECT_EQ(cell->step_output_size(), cell->output_size());
  }
}

TEST(CellClasses, EachErrorNamesItsClass) {
  for (const CellClass& one : classes()) {
    SCOPED_TRACE(one.name);
    const OwnGraph own;
    const auto cell = one.make();
    const CellState good = states_of(*cell);
    const Tensor x = varied({kBatch, kDepth});
    const std::string at = "[" + one.name + "] ";
    const auto refused = [&](const Tensor& inputs, const CellState& state) {
      return thrown<ArgumentError>([&] { (*cell)(inputs, state); });
    };
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{kBatch, kDepth, 1}}) {
      EXPECT_EQ(refused(varied(shape), good), at + "inputs have shape " + to_string(shape) +
                                                  ", expected 2 dimensions [batch, depth]");
    }
    CellState more = good;
    more.push_back(good[0]);
    EXPECT_EQ(refused(x, more), at + "a state of " + std::to_string(more.size()) +
                                    " tensors, expected " + std::to_string(good.size()));
    EXPECT_EQ(refused(x, {}), at + "a state of 0 tensors, expected " + std::to_string(good.size()));
    for (std::size_t i = 0; i < good.size(); ++i) {
      CellState wrong = good;
      const Shape right = good[i].shape();
      for (const Shape& shape :
           {Shape{kBatch, right[1] + 1}, Shape{kBatch + 1, right[1]}, Shape{right[1]}}) {
        wrong[i] = varied(shape);
        EXPECT_EQ(refused(x, wrong), at + "state[" + std::to_string(i) + "] has shape " +
                                         to_string(shape) + ", expected " + to_string(right));
      }
    }
    EXPECT_TRUE(own.graph.variables().empty());
    if (!dynamic_cast<const VariableCell*>(cell.get())) continue;
    EXPECT_EQ(refused(varied({kBatch, kDepth}, 1, DType::kFloat64), good),
              at + "inputs are float64, expected float32");
    EXPECT_EQ(refused(varied({kBatch, 0}), good),
              at + "an input shape of [2, 0], expected its last dimension to be defined");
  }
}

TEST(CellClasses, MadeForTheirMode) {
  const OwnGraph own;
  const auto name_of = [](RnnMode mode) {
    const auto cell = make_compatible_cell(mode, units(kUnits));
    return cell->name();
  };
  EXPECT_EQ(name_of(RnnMode::kLstm), "cudnn_compatible_lstm_cell");
  EXPECT_EQ(name_of(RnnMode::kGru), "cudnn_compatible_gru_cell");
  EXPECT_EQ(name_of(RnnMode::kRnnTanh), "basic_rnn_cell");
  EXPECT_EQ(name_of(RnnMode::kRnnRelu), "basic_rnn_cell");
  const Tensor x = varied({kBatch, kUnits});
  const auto activation = [&](RnnMode mode) {
    const auto cell =
        std::dynamic_pointer_cast<BasicRNNCell>(make_compatible_cell(mode, units(kUnits)));
    return cell->activation()(x);
  };
  EXPECT_TRUE(same(activation(RnnMode::kRnnTanh), ops::tanh(x)));
  EXPECT_TRUE(same(activation(RnnMode::kRnnRelu), ops::relu(x)));
}

// Every option that all of them have, at a value of its own.
template <class Options>
void set_common(Options& options) {
  options.num_units = 3;
  options.dtype = DType::kFloat64;
  options.kernel_initializer = constant_initializer(0.25);
  options.seed = 4;
  options.name = "mine";
  options.device = &test_device(1);
  options.reuse = true;
}

template <class Options>
void expect_common(const Options& config) {
  EXPECT_EQ(config.num_units, 3);
  EXPECT_EQ(config.dtype, DType::kFloat64);
  EXPECT_EQ(value_of(config.kernel_initializer), 0.25);
  EXPECT_EQ(config.seed, 4);
  EXPECT_EQ(config.name, "mine");
  EXPECT_EQ(config.device, &test_device(1));
  EXPECT_TRUE(config.reuse);
}

/// Both of a cell and of one that is made of its configuration.
template <class Cell, class Options, class Check>
void check_config(Options options, const Check& check) {
  const OwnGraph own;
  set_common(options);
  const Cell cell(options);
  const auto again = Cell::from_config(cell.get_config());
  for (const Cell* const each : {&cell, static_cast<const Cell*>(again.get())}) {
    const auto config = each->get_config();
    expect_common(config);
    check(config);
    EXPECT_EQ(each->dtype(), DType::kFloat64);
    EXPECT_EQ(&each->device(), &test_device(1));
    EXPECT_EQ(each->name(), "mine");
    EXPECT_EQ(&each->zero_state(1, DType::kFloat32)[0].device(), &test_device(1));
  }
}

TEST(CellClasses, AConfigurationHasEachOption) {
  CompatibleCellOptions compatible;
  compatible.num_proj = 2;
  const auto projects = [](const CompatibleCellOptions& config) { EXPECT_EQ(config.num_proj, 2); };
  check_config<CudnnCompatibleLSTMCell>(compatible, projects);
  check_config<CudnnCompatibleGRUCell>(CompatibleCellOptions{}, [](const auto&) {});
  check_config<BasicRNNCell>(CompatibleCellOptions{}, [](const auto&) {});
  const Tensor x = varied({2, 3});
  const LSTMCellOptions lstm{.use_peepholes = true,
                             .cell_clip = 0.5,
                             .num_proj = 2,
                             .proj_clip = 0.75,
                             .forget_bias = -1.5,
                             .activation = ops::relu};
  check_config<LSTMCell>(lstm, [&](const LSTMCellOptions& config) {
    EXPECT_TRUE(config.use_peepholes);
    EXPECT_EQ(config.cell_clip, 0.5);
    EXPECT_EQ(config.num_proj, 2);
    EXPECT_EQ(config.proj_clip, 0.75);
    EXPECT_EQ(config.forget_bias, -1.5);
    EXPECT_TRUE(same(config.activation(x), ops::relu(x)));
  });
  const GRUCellOptions gru{.activation = ops::sigmoid,
                           .bias_initializer = constant_initializer(0.75)};
  check_config<GRUCell>(gru, [&](const GRUCellOptions& config) {
    EXPECT_EQ(value_of(config.bias_initializer), 0.75);
    EXPECT_TRUE(same(config.activation(x), ops::sigmoid(x)));
  });
  const LayerNormBasicLSTMCellOptions norm{.forget_bias = -1.5,
                                           .activation = ops::relu,
                                           .layer_norm = false,
                                           .norm_gain = 0.5,
                                           .norm_shift = 0.125,
                                           .dropout_keep_prob = 0.75,
                                           .dropout_prob_seed = 8};
  check_config<LayerNormBasicLSTMCell>(norm, [&](const LayerNormBasicLSTMCellOptions& config) {
    EXPECT_EQ(config.forget_bias, -1.5);
    EXPECT_TRUE(same(config.activation(x), ops::relu(x)));
    EXPECT_FALSE(config.layer_norm);
    EXPECT_EQ(config.norm_gain, 0.5);
    EXPECT_EQ(config.norm_shift, 0.125);
    EXPECT_EQ(config.dropout_keep_prob, 0.75);
    EXPECT_EQ(config.dropout_prob_seed, 8);
  });
}

TEST(CellClasses, AWrapperHasEachOptionAndItsSeed) {
  const auto inner = [] { return std::make_shared<CudnnCompatibleGRUCell>(units(3)); };
  for (const std::int64_t seed : {5, 6}) {
    const OwnGraph own;
    Graph::current().set_seed(2);
    DropoutWrapper cell(
        inner(),
        {.input_keep_prob = 0.25, .output_keep_prob = 0.5, .state_keep_prob = 0.75, .seed = seed});
    const DropoutWrapperOptions config = cell.get_config();
    EXPECT_EQ(config.input_keep_prob, 0.25);
    EXPECT_EQ(config.output_keep_prob, 0.5);
    EXPECT_EQ(config.state_keep_prob, 0.75);
    EXPECT_EQ(config.seed, seed);
    Graph other;
    other.set_seed(2);
    EXPECT_EQ(cell.dropout_state().seed(), ops::DropoutState(other.op_seeds(seed)).seed());
    // Input, state, output: three masks a step.
    cell(varied({2, 3}), cell.zero_state(2, DType::kFloat32));
    EXPECT_EQ(cell.dropout_state().calls(), 3U);
  }
}

// A loop of an overridden call has the variables of its scope, which a copy would not find.
TEST(CellClasses, OnlyLoopsOfTheClassCanBeRecordedAgain) {
  for (const bool overridden : {false, true}) {
    const OwnGraph own;
    const auto cell = std::make_shared<CudnnCompatibleGRUCell>(units(3));
    if (overridden) {
      cell->set_overrides({.call = [&](const Tensor& x, const CellState& state,
                                       const std::string&) { return cell->run_step(x, state); }});
    }
    EXPECT_EQ(cell->needs_reuse(), overridden);
    dynamic_rnn(*cell, Input({-1, -1, 5}), {.dtype = DType::kFloat32});
    ASSERT_FALSE(cell->inbound_nodes().empty());
    EXPECT_EQ(cell->inbound_nodes().back()->attributes.has_value(), !overridden);
  }
}

}  // namespace
}  // namespace openrnn
