// Where Keras's arrays have each weight and each bias, in every form, and the names of its classes
// in files.
#include "mapping/support/keras_arrays.h"

#include <gtest/gtest.h>

#include "mapping/keras/config.h"
#include "mapping/keras/write/model.h"
#include "mapping/networks.h"

namespace openrnn {
namespace {

using mapping::KerasForm;
using mapping::KerasPlace;

// The order of the gates in Keras's arrays.
std::int64_t block_of(Gate gate, KerasForm form) {
  constexpr Gate kUsual[][4] = {{Gate::kI, Gate::kF, Gate::kC, Gate::kO},
                                {Gate::kZ, Gate::kR, Gate::kN, Gate::kN},
                                {Gate::kH, Gate::kH, Gate::kH, Gate::kH}};
  constexpr Gate kSplit[] = {Gate::kI, Gate::kC, Gate::kF, Gate::kO};
  for (std::int64_t block = 0; block < 4; ++block) {
    if (form == KerasForm::kSplit && kSplit[block] == gate) return block;
    if (form == KerasForm::kSplit && gate == Gate::kO) continue;
    for (const auto& order : kUsual) {
      if (order[block] == gate && (form != KerasForm::kSplit || &order != &kUsual[0])) return block;
    }
  }
  return -1;
}

/// Which array, and which of its values.
struct Spot {
  std::size_t array;
  std::int64_t at;
};

Spot spot_of(const RnnSpec& spec, KerasForm form, const ParamRegion& region, std::int64_t unit,
             std::int64_t column) {
  const std::int64_t units = spec.num_units, width = spec.num_gates() * units;
  const std::int64_t block =
      block_of(gates_of(spec.mode)[static_cast<std::size_t>(region.gate)], form);
  const std::size_t part = region.is_bias()                             ? 2
                           : region.role == ParamRole::kRecurrentWeight ? 1
                                                                        : 0;
  if (form == KerasForm::kSplit) {
    return {3 * static_cast<std::size_t>(block) + part, column * units + unit};
  }
  if (region.is_bias()) {
    const bool second = region.role == ParamRole::kRecurrentBias;
    return {2, (second ? width : 0) + block * units + unit};
  }
  if (form == KerasForm::kUsual) return {part, column * width + block * units + unit};
  // cuDNN's rows one after another, in rows as long as there are units.
  const std::int64_t flat = unit * region.cols + column;
  return {part, flat / units * width + block * units + flat % units};
}

void expect_places(const RnnSpec& spec, KerasForm form) {
  const ParamsLayout layout(spec);
  const Array params = values_of(spec.dtype, {layout.size()}, 3);
  Array again(spec.dtype, {layout.size()});
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    for (std::int64_t direction = 0; direction < 2; ++direction) {
      const KerasPlace place{.layer = layer, .direction = direction, .form = form};
      const std::vector<Array> arrays = mapping::keras_arrays(layout, place, params.view());
      std::vector<ConstArrayView> views;
      for (const Array& array : arrays) views.push_back(array.view());
      mapping::set_from_keras(layout, place, views, &again);
      for (const auto list : {layout.weights(), layout.biases()}) {
        for (const ParamRegion& region : list) {
          if (region.layer != layer || region.direction != direction) continue;
          for (std::int64_t i = 0; i < region.rows * region.cols; ++i) {
            const Spot spot = spot_of(spec, form, region, i / region.cols, i % region.cols);
            ASSERT_EQ(element(views.at(spot.array), spot.at),
                      element(params.view(), region.offset + i))
                << describe(spec) << " " << region.name << " " << i;
          }
        }
      }
    }
  }
  EXPECT_TRUE(same_bytes(again, params)) << describe(spec);
}

RnnSpec spec_of(RnnMode mode, DType dtype, bool single_bias) {
  return {.mode = mode,
          .num_layers = 2,
          .num_units = 3,
          .input_size = 2,
          .direction = Direction::kBidirectional,
          .dtype = dtype,
          .single_bias = single_bias};
}

TEST(KerasArrays, HaveEachValueInItsPlace) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh}) {
      RnnSpec one = spec_of(mode, dtype, true), none = one;
      none.use_bias = none.single_bias = false;
      one.reset_after = none.reset_after = mode != RnnMode::kGru;
      for (const KerasForm form : {KerasForm::kUsual, KerasForm::kSplit}) expect_places(one, form);
      expect_places(none, KerasForm::kUsual);
      if (mode != RnnMode::kRnnTanh) expect_places(spec_of(mode, dtype, false), KerasForm::kCudnn);
    }
    expect_places(spec_of(RnnMode::kGru, dtype, false), KerasForm::kUsual);
  }
}

TEST(KerasArrays, HaveTheShapesOfTheirForm) {
  const auto shapes_of = [](RnnMode mode, bool single_bias, KerasForm form, std::int64_t layer) {
    const ParamsLayout layout(spec_of(mode, DType::kFloat32, single_bias));
    return mapping::keras_shapes(layout, {.layer = layer, .form = form});
  };
  using Shapes = std::vector<Shape>;
  EXPECT_EQ(shapes_of(RnnMode::kLstm, true, KerasForm::kUsual, 0),
            (Shapes{{2, 12}, {3, 12}, {12}}));
  EXPECT_EQ(shapes_of(RnnMode::kGru, false, KerasForm::kUsual, 1),
            (Shapes{{6, 9}, {3, 9}, {2, 9}}));
  EXPECT_EQ(shapes_of(RnnMode::kGru, false, KerasForm::kCudnn, 0), (Shapes{{2, 9}, {3, 9}, {18}}));
  EXPECT_EQ(shapes_of(RnnMode::kRnnTanh, true, KerasForm::kSplit, 1),
            (Shapes{{6, 3}, {3, 3}, {3}}));
}

TEST(KerasNames, OfClassesInFiles) {
  const std::pair<const char*, const char*> names[] = {
      {"LSTM", "lstm"},
      {"GRU", "gru"},
      {"SimpleRNN", "simple_rnn"},
      {"CuDNNLSTM", "cu_dnnlstm"},
      {"CuDNNGRU", "cu_dnngru"},
      {"InputLayer", "input_layer"},
      {"TimeDistributed", "time_distributed"},
      {"Dropout", "dropout"},
      {"RNN", "rnn"},
      {"ReLU", "re_lu"},
      {"PReLU", "p_re_lu"},
      {"LSTMCell", "lstm_cell"},
      {"Conv1DTranspose", "conv1d_transpose"},
      {"GlobalAveragePooling1D", "global_average_pooling1d"},
      {"AZa", "a_za"},
      {"AZz", "a_zz"},
      {"AZ{", "az{"},
      {"A@`B[", "a@`b["},
      {"ALSTM", "alstm"},
      {"z", "z"},
      {"", ""}};
  for (const auto& [name, expected] : names) {
    EXPECT_EQ(mapping::keras_snake_case(name), expected) << name;
  }
}

// Letters, digits and dots stay; two layers never have one name.
TEST(KerasNames, OfLayers) {
  mapping::KerasNames names;
  const std::pair<const char*, const char*> cases[] = {{"AZaz-09", "AZaz-09"},
                                                       {"Enc", "Enc"},
                                                       {"_a", "rnn_a"},
                                                       {"-x", "rnn-x"},
                                                       {"a/b", "a.b"},
                                                       {"a.b", "a.b_1"},
                                                       {"a/b", "a.b_2"},
                                                       {"a@[`{:b", "a_____b"},
                                                       {"\xc3\xa4 b", "rnn___b"},
                                                       {"", "rnn"},
                                                       {"rnn", "rnn_1"},
                                                       {"0", "0"}};
  for (const auto& [name, expected] : cases) EXPECT_EQ(names.layer(name), expected) << name;
}

TEST(KerasNames, OfGroupsAreCountedForEachClass) {
  mapping::KerasNames names;
  for (const char* expected : {"lstm", "lstm_1", "lstm_2"}) {
    EXPECT_EQ(names.group("LSTM"), expected);
  }
  EXPECT_EQ(names.group("TimeDistributed"), "time_distributed");
  EXPECT_EQ(names.group("GRU"), "gru");
  EXPECT_EQ(names.group("TimeDistributed"), "time_distributed_1");
}

}  // namespace
}  // namespace openrnn
