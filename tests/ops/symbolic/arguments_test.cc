// Arguments of recorded operations: each is read as it was written, and each name is its function.
#include "openrnn/graph_layer.h"
#include "openrnn/spec_fields.h"
#include "ops/check_gradient.h"
#include "ops/symbolic/replay.h"
#include "saveables/support.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

using ops::ArgumentReader;
using ops::ArgumentWriter;
using Tensors = std::vector<Tensor>;

/// What is read of what was written, with others around it.
template <class T>
T again(const T& value) {
  ArgumentWriter writer;
  writer.write(true);
  writer.write(value);
  writer.write(std::int64_t{77});
  ArgumentReader reader{writer.inputs, writer.attributes};
  bool before = false;
  std::int64_t after = 0;
  T found{};
  reader.read(before);
  reader.read(found);
  reader.read(after);
  EXPECT_TRUE(before);
  EXPECT_EQ(after, 77);
  EXPECT_EQ(reader.next_attribute, writer.attributes.size());
  EXPECT_EQ(reader.next_input, writer.inputs.size());
  return found;
}

TEST(Arguments, NumbersAndLists) {
  for (const bool value : {false, true}) EXPECT_EQ(again(value), value);
  for (const double value : {-0.5, 1e300}) EXPECT_EQ(again(value), value);
  for (const std::int64_t value : {std::int64_t{-3}, std::int64_t{1} << 40U}) {
    EXPECT_EQ(again(value), value);
  }
  EXPECT_EQ(again(~std::uint64_t{5}), ~std::uint64_t{5});
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64,
                            DType::kInt32, DType::kInt64, DType::kUInt8, DType::kBool}) {
    EXPECT_EQ(again(dtype), dtype);
  }
  EXPECT_EQ(again(std::vector<std::int64_t>{4, -5}), (std::vector<std::int64_t>{4, -5}));
  EXPECT_EQ(again(std::vector<std::int32_t>{6}), (std::vector<std::int32_t>{6}));
  EXPECT_EQ(again(std::vector<std::int32_t>{}), (std::vector<std::int32_t>{}));
  EXPECT_EQ(again(std::vector<bool>{true, false, false}), (std::vector<bool>{true, false, false}));
}

TEST(Arguments, OptionsOfOperations) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const ops::MatmulOptions found =
          again(ops::MatmulOptions{.transpose_a = a, .transpose_b = b});
      EXPECT_EQ(found.transpose_a, a);
      EXPECT_EQ(found.transpose_b, b);
    }
  }
  const ops::SliceRange slice = again(ops::SliceRange{.axis = -2, .begin = 3, .size = 5});
  EXPECT_EQ(slice.axis, -2);
  EXPECT_EQ(slice.begin, 3);
  EXPECT_EQ(slice.size, 5);
  using Place = std::optional<std::int64_t>;
  for (const Place begin : {Place(), Place(0), Place(-4)}) {
    for (const Place end : {Place(), Place(0), Place(9)}) {
      const ops::StepRange range =
          again(ops::StepRange{.axis = 2, .begin = begin, .end = end, .step = -3});
      EXPECT_EQ(range.axis, 2);
      EXPECT_EQ(range.begin, begin);
      EXPECT_EQ(range.end, end);
      EXPECT_EQ(range.step, -3);
    }
  }
  using Axes = std::optional<std::vector<std::int64_t>>;
  for (const Axes& axes : {Axes(), Axes(std::vector<std::int64_t>{}), Axes({{2, -1}})}) {
    for (const bool keepdims : {false, true}) {
      const ops::ReduceOptions found =
          again(ops::ReduceOptions{.axes = axes, .keepdims = keepdims});
      EXPECT_EQ(found.axes, axes);
      EXPECT_EQ(found.keepdims, keepdims);
    }
  }
  const ops::CtcOptions ctc = again(ops::CtcOptions{
      .logit_lengths = {1, 2}, .label_lengths = {3}, .blank = 4, .time_major = false});
  EXPECT_EQ(ctc.logit_lengths, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(ctc.label_lengths, (std::vector<std::int32_t>{3}));
  EXPECT_EQ(ctc.blank, 4);
  EXPECT_FALSE(ctc.time_major);
  EXPECT_TRUE(again(ops::CtcOptions{}).time_major);
  const DropoutKey key = again(DropoutKey{.seed = ~std::uint64_t{2}, .call = 3});
  EXPECT_EQ(key.seed, ~std::uint64_t{2});
  EXPECT_EQ(key.call, 3U);
}

// Another value than the usual one: a choice, or a number of its own.
FieldValue other_value(const RnnField& field, double shift) {
  if (field.name == "dtype") return "float64";
  if (field.name.ends_with("activation")) return "leaky_relu(" + std::to_string(shift) + ")";
  const FieldValue usual = field.default_value();
  // The first choice may be that of no value.
  if (!field.choices.empty()) {
    const FieldValue last = std::string(field.choices.back());
    return last != usual ? last : FieldValue(std::string(field.choices.front()));
  }
  RnnSpec spec;
  const bool* const flag = std::get_if<bool>(&usual);
  for (const FieldValue& value :
       {FieldValue(!(flag && *flag)), FieldValue(static_cast<std::int64_t>(shift * 64)),
        FieldValue(shift), FieldValue(std::array{-shift, 2 * shift})}) {
    if (value != usual && field.set(spec, value)) return value;
  }
  ADD_FAILURE() << field.name;
  return {};
}

TEST(Arguments, EachFieldOfANetwork) {
  RnnSpec all;
  double shift = 0.125;
  for (const RnnField& field : rnn_fields()) {
    RnnSpec spec;
    const FieldValue value = other_value(field, shift += 0.125);
    field.put(spec, value);
    field.put(all, value);
    EXPECT_NE(spec, RnnSpec()) << field.name;
    EXPECT_EQ(again(spec), spec) << field.name;
  }
  EXPECT_EQ(again(all), all);
  EXPECT_EQ(again(RnnSpec()), RnnSpec());
}

TEST(Arguments, TensorsInTheirOrder) {
  const Tensor a = random_tensor({2}, 1), b = random_tensor({3}, 2), c = random_tensor({4}, 3);
  ArgumentWriter writer;
  writer.write(a);
  writer.write(Tensors{b, c});
  ArgumentReader reader{writer.inputs, writer.attributes};
  Tensor first;
  Tensors rest;
  reader.read(first);
  reader.read(rest);
  EXPECT_TRUE(same_tensor(first, a));
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_TRUE(same_tensor(rest[0], b) && same_tensor(rest[1], c));
  EXPECT_EQ(reader.next_input, 3U);
}

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

/// A recorded call gives what the function gives, under that name.
void expect_replayed(const std::string& name, const Tensors& values,
                     const std::function<Tensor(const Tensors&)>& function) {
  SCOPED_TRACE(name);
  Graph graph;
  const Graph::AsDefault current(graph);
  Tensors inputs;
  for (const Tensor& value : values) inputs.push_back(Input(value.shape(), value.dtype()));
  const Tensor recorded = function(inputs), direct = function(values);
  EXPECT_EQ(recorded.symbol()->call->op, name);
  EXPECT_EQ(recorded.dtype(), direct.dtype());
  EXPECT_EQ(recorded.shape(), direct.shape());
  Model model(inputs, {recorded});
  EXPECT_TRUE(same_bits(model(values)[0].to_host(), direct.to_host()));
}

TEST(Arguments, EachNameIsItsFunction) {
  const Tensor x = random_tensor({3, 4}, 1, 0.1, 0.9), y = random_tensor({3, 4}, 2, 0.2, 0.8);
  for (const auto& [name, function] : std::vector<std::pair<std::string, Unary>>{
           {"absolute", ops::absolute},
           {"exp", ops::exp},
           {"log", ops::log},
           {"negate", ops::negate},
           {"relu", ops::relu},
           {"sigmoid", ops::sigmoid},
           {"softmax", ops::softmax},
           {"softplus", ops::softplus},
           {"sqrt", ops::sqrt},
           {"square", ops::square},
           {"tanh", ops::tanh},
           {"reduce_sum", static_cast<Unary>(ops::reduce_sum)},
           {"reduce_mean", static_cast<Unary>(ops::reduce_mean)},
           {"transpose_leading", ops::transpose_leading}}) {
    expect_replayed(name, {ops::add_scalar(x, -0.4)},
                    [f = function](const Tensors& in) { return f(in[0]); });
    expect_replayed(name, {x}, [f = function](const Tensors& in) { return f(in[0]); });
  }
  const Tensor tied = ops::concat({ops::slice(x, {.axis = 0, .begin = 0, .size = 1}),
                                   ops::slice(y, {.axis = 0, .begin = 1, .size = 2})},
                                  0);
  for (const auto& [name, function] : std::vector<std::pair<std::string, Binary>>{
           {"add", ops::add},
           {"subtract", ops::subtract},
           {"multiply", ops::multiply},
           {"divide", ops::divide},
           {"maximum", ops::maximum},
           {"minimum", ops::minimum},
           {"power", ops::power},
           {"equal", ops::equal},
           {"less", ops::less},
           {"less_equal", ops::less_equal},
           {"logical_and", ops::logical_and},
           {"logical_or", ops::logical_or},
           {"sigmoid_cross_entropy", ops::sigmoid_cross_entropy}}) {
    const auto call = [f = function](const Tensors& in) { return f(in[0], in[1]); };
    expect_replayed(name, {x, tied}, call);
    expect_replayed(
        name, {ops::relu(ops::add_scalar(x, -0.4)), ops::relu(ops::add_scalar(y, -0.5))}, call);
  }
  expect_replayed("logical_not", {ops::less(x, y)},
                  [](const Tensors& in) { return ops::logical_not(in[0]); });
}

TEST(Arguments, EachReductionIsItsFunction) {
  using Reduce = Tensor (*)(const Tensor&, const ops::ReduceOptions&);
  const Tensor x = random_tensor({3, 2, 4}, 1);
  for (const ops::ReduceOptions& options :
       {ops::ReduceOptions{}, ops::ReduceOptions{.axes = {{-1}}},
        ops::ReduceOptions{.axes = {{0, 2}}, .keepdims = true}}) {
    for (const auto& [name, function] :
         std::vector<std::pair<std::string, Reduce>>{{"reduce_sum_along", ops::reduce_sum},
                                                     {"reduce_mean_along", ops::reduce_mean},
                                                     {"reduce_max", ops::reduce_max},
                                                     {"reduce_min", ops::reduce_min},
                                                     {"reduce_variance", ops::reduce_variance},
                                                     {"reduce_logsumexp", ops::reduce_logsumexp}}) {
      expect_replayed(name, {x},
                      [f = function, &options](const Tensors& in) { return f(in[0], options); });
    }
  }
  for (const std::int64_t axis : {0, 1, -1}) {
    expect_replayed("argmax", {x}, [=](const Tensors& in) { return ops::argmax(in[0], axis); });
    expect_replayed("argmin", {x}, [=](const Tensors& in) { return ops::argmin(in[0], axis); });
    expect_replayed("log_softmax", {x},
                    [=](const Tensors& in) { return ops::log_softmax(in[0], axis); });
    expect_replayed(axis == -1 ? "softmax" : "softmax_along", {x},
                    [=](const Tensors& in) { return ops::softmax_along(in[0], axis); });
  }
}

TEST(Arguments, EachShapeIsItsFunction) {
  const Tensor x = random_tensor({3, 2, 4}, 1), indices = int_tensor({3}, {2, 0, 2});
  const auto expect = [&](const std::string& name, const auto& function) {
    expect_replayed(name, {x}, [&](const Tensors& in) { return function(in[0]); });
  };
  expect("broadcast_to", [](const Tensor& t) { return ops::broadcast_to(t, {2, 3, 2, 4}); });
  expect("sum_to", [](const Tensor& t) { return ops::sum_to(t, {2, 1}); });
  expect("transpose", [](const Tensor& t) { return ops::transpose(t); });
  expect("transpose", [](const Tensor& t) { return ops::transpose(t, {1, 0, 2}); });
  expect("tile", [](const Tensor& t) { return ops::tile(t, {1, 3, 2}); });
  expect("expand_dims", [](const Tensor& t) { return ops::expand_dims(t, -2); });
  expect("strided_slice",
         [](const Tensor& t) { return ops::strided_slice(t, {.axis = 2, .begin = 1}); });
  expect("strided_slice",
         [](const Tensor& t) { return ops::strided_slice(t, {.axis = 0, .end = -1}); });
  expect("slice",
         [](const Tensor& t) { return ops::slice(t, {.axis = 2, .begin = 1, .size = 2}); });
  expect("full_like", [](const Tensor& t) { return ops::full_like(t, -1.5); });
  expect("cast", [](const Tensor& t) { return ops::cast(t, DType::kFloat32); });
  expect("to", [](const Tensor& t) { return t.to(default_device()); });
  expect_replayed("squeeze", {ops::reshape(x, {3, 1, 8, 1})},
                  [](const Tensors& in) { return ops::squeeze(in[0], {-1}); });
  expect_replayed("gather", {x, indices},
                  [](const Tensors& in) { return ops::gather(in[0], in[1], 0); });
  expect_replayed("one_hot", {indices},
                  [](const Tensors& in) { return ops::one_hot(in[0], 4, DType::kFloat64); });
  expect_replayed("embedding_lookup", {ops::reshape(x, {6, 4}), indices},
                  [](const Tensors& in) { return ops::embedding_lookup(in[0], in[1]); });
  expect_replayed("reverse_sequence_by", {x, int_tensor({2}, {3, 2})},
                  [](const Tensors& in) { return ops::reverse_sequence_by(in[0], in[1]); });
  expect_replayed("reverse_sequence_by", {x, int_tensor({3}, {1, 2, 2})},
                  [](const Tensors& in) { return ops::reverse_sequence_by(in[0], in[1], false); });
}

// Where a value lies then, and that it counts as placed there.
TEST(Arguments, ARecordedCopyGoesToTheDeviceThatItWasAskedFor) {
  const Tensor in = Input({2, 3}, DType::kFloat64), x = random_tensor({2, 3}, 1);
  for (const Device* const device : {&cpu_device(), &test_device(0), &test_device(1)}) {
    Model model({in}, {in.to(*device), ops::tanh(in.to(*device))});
    for (const Tensor& given : {x, x.to(test_device(0)), x.to(test_device(1))}) {
      const std::vector<Tensor> out = model({given});
      EXPECT_EQ(&out[0].device(), device);
      EXPECT_TRUE(out[0].placed());
      EXPECT_EQ(&out[1].device(), device);
      EXPECT_EQ(values_of(out[0]), values_of(x));
    }
  }
  // As a file names it.
  const std::vector<Tensor> named = ops::record_operation("to", {in}, {{DType::kFloat64, {2, 3}}},
                                                          Attributes{std::string("cpu")});
  Model model({in}, named);
  for (const Tensor& given : {x, x.to(cpu_device()), x.to(test_device(0)), x.to(test_device(1))}) {
    const Tensor out = model({given})[0];
    EXPECT_EQ(&out.device(), &cpu_device());
    EXPECT_TRUE(out.placed());
    EXPECT_EQ(values_of(out), values_of(x));
  }
}

TEST(Arguments, EachChoiceProductAndLossIsItsFunction) {
  const Tensor x = random_tensor({3, 2}, 1), y = random_tensor({3, 2}, 2);
  expect_replayed("where", {ops::less(x, y), x, y},
                  [](const Tensors& in) { return ops::where(in[0], in[1], in[2]); });
  expect_replayed("einsum", {x, y}, [](const Tensors& in) {
    return ops::einsum("ij,kj->ki", {in[0], in[1]});
  });
  expect_replayed("einsum", {x}, [](const Tensors& in) { return ops::einsum("ij->ji", {in[0]}); });
  const Tensor p = random_tensor({3, 2}, 3, 0.0, 1.0), z = random_tensor({3, 2}, 4, 0.0, 1.0);
  expect_replayed("binary_cross_entropy", {p, z},
                  [](const Tensors& in) { return ops::binary_cross_entropy_rows(in[0], in[1]); });
  expect_replayed("binary_cross_entropy", {p, z}, [](const Tensors& in) {
    return ops::binary_cross_entropy_rows(in[0], in[1], 0.25);
  });
  const Tensor logits = random_tensor({5, 3, 4}, 5),
               labels = int_tensor({3, 2}, {1, 2, 3, 3, 2, 1});
  expect_replayed("ctc_loss", {logits, labels},
                  [](const Tensors& in) { return ops::ctc_loss(in[0], in[1]); });
  const Tensor last = int_tensor({5, 2}, {1, 2, 0, 0, 2, 1, 0, 1, 1, 2});
  const ops::CtcOptions options{.logit_lengths = {3, 3, 2, 3, 3},
                                .label_lengths = {2, 2, 1, 0, 2},
                                .blank = -1,
                                .time_major = false};
  expect_replayed("ctc_loss", {logits, last},
                  [&](const Tensors& in) { return ops::ctc_loss(in[0], in[1], options); });
}

}  // namespace
}  // namespace openrnn::testing
