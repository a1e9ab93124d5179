// Every operation on symbolic tensors: its recorded shape, and its replay against the direct call.
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"
#include "ops/symbolic/replay.h"
#include "saveables/support.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

struct Case {
  const char* name;
  Tensors inputs;
  std::function<Tensors(const Tensors&)> run;
};

template <class Function>
Case one(const char* name, Tensors inputs, Function function) {
  return {name, std::move(inputs), [function](const Tensors& in) { return Tensors{function(in)}; }};
}

Tensor random(const Shape& shape, std::uint64_t seed = 1) {
  return random_tensor(shape, seed, 0.1, 1.0, DType::kFloat32);
}

std::vector<Case> elementwise_cases() {
  const Tensor a = random({3, 5}), b = random({3, 5}, 2);
  return {
      one("add", {a, b}, [](const Tensors& in) { return ops::add(in[0], in[1]); }),
      one("subtract", {a, b}, [](const Tensors& in) { return ops::subtract(in[0], in[1]); }),
      one("multiply", {a, b}, [](const Tensors& in) { return ops::multiply(in[0], in[1]); }),
      one("divide", {a, b}, [](const Tensors& in) { return ops::divide(in[0], in[1]); }),
      one("add_n", {a, b}, [](const Tensors& in) { return ops::add_n(in); }),
      one("add_row", {a, random({5}, 3)},
          [](const Tensors& in) { return ops::add_row(in[0], in[1]); }),
      one("add_scalar", {a}, [](const Tensors& in) { return ops::add_scalar(in[0], 0.5); }),
      one("clip", {a}, [](const Tensors& in) { return ops::clip(in[0], -0.25, 0.5); }),
      one("scale", {a}, [](const Tensors& in) { return ops::scale(in[0], 0.5); }),
      one("relu", {a}, [](const Tensors& in) { return ops::relu(in[0]); }),
      one("tanh", {a}, [](const Tensors& in) { return ops::tanh(in[0]); }),
      one("negate", {a}, [](const Tensors& in) { return ops::negate(in[0]); }),
      one("cast", {a}, [](const Tensors& in) { return ops::cast(in[0], DType::kFloat64); }),
      one("dropout", {a},
          [](const Tensors& in) { return ops::dropout(in[0], 0.5, {.seed = 3, .call = 1}); }),
      one("softmax", {a}, [](const Tensors& in) { return ops::softmax(in[0]); }),
      one("reduce_sum", {a}, [](const Tensors& in) { return ops::reduce_sum(in[0]); }),
      one("reduce_mean", {a}, [](const Tensors& in) { return ops::reduce_mean(in[0]); }),
      one("l1", {a}, [](const Tensors& in) { return ops::l1_regularization(in[0], 0.3); }),
      one("l2", {a}, [](const Tensors& in) { return ops::l2_regularization(in[0], 0.3); }),
      one("mean_squared_error", {a, b},
          [](const Tensors& in) { return ops::mean_squared_error(in[0], in[1]); }),
  };
}

std::vector<Case> shape_cases() {
  const Tensor a = random({3, 5}), b = random({3, 5}, 2), deep = random({3, 2, 4}, 4);
  const Tensor labels = int_tensor({3}, {4, 0, 2});
  return {
      one("matmul", {a, random({5, 2}, 3)},
          [](const Tensors& in) { return ops::matmul(in[0], in[1]); }),
      one("matmul transposed", {a, random({2, 5}, 3)},
          [](const Tensors& in) { return ops::matmul(in[0], in[1], {.transpose_b = true}); }),
      one("dense", {deep, random({4, 6}, 5), random({6}, 6)},
          [](const Tensors& in) { return ops::dense(in[0], in[1], in[2]); }),
      one("reshape", {deep},
          [](const Tensors& in) {
            return ops::reshape(in[0], {-1, 8});
          }),
      one("concat", {a, b}, [](const Tensors& in) { return ops::concat(in, 1); }),
      one("slice", {deep},
          [](const Tensors& in) { return ops::slice(in[0], {.axis = 0, .begin = 1, .size = 2}); }),
      one("stack", {a, b}, [](const Tensors& in) { return ops::stack(in); }),
      one("transpose_leading", {deep},
          [](const Tensors& in) { return ops::transpose_leading(in[0]); }),
      one("reverse_sequence", {deep},
          [](const Tensors& in) {
            return ops::reverse_sequence(in[0], {2, 3});
          }),
      one("reverse_sequence batch-major", {deep},
          [](const Tensors& in) {
            return ops::reverse_sequence(in[0], {2, 1, 0}, false);
          }),
      one("matmul transposed twice", {random({5, 3}, 8), random({2, 5}, 3)},
          [](const Tensors& in) {
            return ops::matmul(in[0], in[1], {.transpose_a = true, .transpose_b = true});
          }),
      one("select_rows", {a, b},
          [](const Tensors& in) {
            return ops::select_rows({true, false, true}, in[0], in[1]);
          }),
      {"split",
       {a},
       [](const Tensors& in) {
         return ops::split(in[0], 1, {2, 3});
       }},
      one("embedding_lookup", {random({7, 4}, 7), labels},
          [](const Tensors& in) { return ops::embedding_lookup(in[0], in[1]); }),
      one("one_hot", {labels},
          [](const Tensors& in) { return ops::one_hot(in[0], 6, DType::kFloat32); }),
      one("cross_entropy_rows", {a, labels},
          [](const Tensors& in) { return ops::softmax_cross_entropy_rows(in[0], in[1]); }),
      one("cross_entropy", {a, labels},
          [](const Tensors& in) { return ops::softmax_cross_entropy(in[0], in[1]); }),
  };
}

std::vector<Case> tensor_cases() {
  const Tensor a = random({3, 5}), row = random({5}, 2), deep = random({3, 2, 4}, 4);
  const ops::ReduceOptions along{.axes = {{0, -1}}, .keepdims = true};
  return {
      one("broadcast", {a, row}, [](const Tensors& in) { return ops::multiply(in[0], in[1]); }),
      one("maximum", {a, row}, [](const Tensors& in) { return ops::maximum(in[0], in[1]); }),
      one("power", {a, row}, [](const Tensors& in) { return ops::power(in[0], in[1]); }),
      one("where", {a, row},
          [](const Tensors& in) {
            return ops::where(ops::logical_not(ops::less(in[0], in[1])), in[0], in[1]);
          }),
      one("log", {a}, [](const Tensors& in) { return ops::log(in[0]); }),
      one("softplus", {a}, [](const Tensors& in) { return ops::softplus(in[0]); }),
      one("full_like", {a}, [](const Tensors& in) { return ops::full_like(in[0], 2.5); }),
      one("reduce_sum", {deep}, [=](const Tensors& in) { return ops::reduce_sum(in[0], along); }),
      one("reduce_mean", {deep},
          [](const Tensors& in) { return ops::reduce_mean(in[0], {.axes = {{1}}}); }),
      one("reduce_max", {deep}, [=](const Tensors& in) { return ops::reduce_max(in[0], along); }),
      one("reduce_std", {deep}, [](const Tensors& in) { return ops::reduce_std(in[0]); }),
      one("reduce_logsumexp", {deep},
          [=](const Tensors& in) { return ops::reduce_logsumexp(in[0], along); }),
      one("argmax", {deep}, [](const Tensors& in) { return ops::argmax(in[0], 1); }),
      one("softmax", {deep}, [](const Tensors& in) { return ops::softmax_along(in[0], 0); }),
      one("log_softmax", {deep}, [](const Tensors& in) { return ops::log_softmax(in[0], 1); }),
      one("transpose", {deep},
          [](const Tensors& in) {
            return ops::transpose(in[0], {2, 0, 1});
          }),
      one("tile", {a},
          [](const Tensors& in) {
            return ops::tile(in[0], {2, 3});
          }),
      one("expand_dims", {a},
          [](const Tensors& in) { return ops::squeeze(ops::expand_dims(in[0], 1), {1}); }),
      one("strided_slice to an end", {a},
          [](const Tensors& in) {
            return ops::strided_slice(in[0], {.axis = 1, .begin = 1, .end = 4, .step = 2});
          }),
      one("strided_slice", {a},
          [](const Tensors& in) {
            return ops::strided_slice(in[0], {.axis = 0, .begin = -1, .step = -2});
          }),
      one("gather", {deep},
          [](const Tensors& in) {
            return ops::gather(in[0], int_tensor({2}, {3, 0}), 2);
          }),
      one("matmul of stacks", {deep, random({4, 2}, 5)},
          [](const Tensors& in) { return ops::matmul(in[0], in[1]); }),
      one("einsum", {deep, random({4, 2}, 5)},
          [](const Tensors& in) { return ops::einsum("bij,jk->kb", in); }),
  };
}

std::vector<Case> tensor_loss_cases() {
  const Tensor a = random({3, 5}), row = random({5}, 2), deep = random({3, 2, 4}, 4);
  return {
      one("binary_cross_entropy", {a, row},
          [](const Tensors& in) { return ops::binary_cross_entropy_rows(in[0], in[1], 0.125); }),
      one("sigmoid_cross_entropy", {a, row},
          [](const Tensors& in) { return ops::sigmoid_cross_entropy(in[0], in[1]); }),
      one("ctc_loss of batches first", {deep},
          [](const Tensors& in) {
            const ops::CtcOptions options{.logit_lengths = {2, 1, 2},
                                          .label_lengths = {1, 1, 2},
                                          .blank = 3,
                                          .time_major = false};
            return ops::ctc_loss(in[0], int_tensor({3, 2}, {1, 2, 0, 1, 2, 0}), options);
          }),
      one("ctc_loss", {deep},
          [](const Tensors& in) {
            return ops::ctc_loss(in[0], int_tensor({2, 1}, {1, 2}), {.logit_lengths = {3, 2}});
          }),
  };
}

// Inputs of the same kind; with `open` their leading dimension is not known.
Tensors symbolic_like(const Tensors& values, bool open) {
  Tensors inputs;
  for (const Tensor& value : values) {
    Shape shape = value.shape();
    // Only what a batch is fed with: kernels keep their sizes.
    if (open && shape[0] == 3) shape[0] = -1;
    inputs.push_back(Input(shape, value.dtype()));
  }
  return inputs;
}

void check_case(const Case& test, bool open) {
  SCOPED_TRACE(std::string(test.name) + (open ? ", leading dimension unknown" : ""));
  Graph graph;
  const Graph::AsDefault current(graph);
  const Tensors expected = test.run(test.inputs);
  const Tensors inputs = symbolic_like(test.inputs, open);
  const Tensors outputs = test.run(inputs);
  ASSERT_EQ(outputs.size(), expected.size());
  Model model(inputs, outputs);
  const Tensors computed = model(test.inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(outputs[i].is_symbolic());
    EXPECT_EQ(outputs[i].dtype(), expected[i].dtype());
    ASSERT_EQ(outputs[i].shape().size(), expected[i].shape().size());
    for (std::size_t d = 0; d < expected[i].shape().size(); ++d) {
      const std::int64_t recorded = outputs[i].shape()[d];
      EXPECT_TRUE(recorded == expected[i].shape()[d] || (open && recorded == -1)) << d;
    }
    EXPECT_TRUE(same_bits(computed[i].to_host(), expected[i].to_host()));
  }
}

TEST(SymbolicOps, ReplayIsTheDirectCall) {
  for (const auto& cases :
       {elementwise_cases(), shape_cases(), tensor_cases(), tensor_loss_cases()}) {
    for (const Case& test : cases) {
      check_case(test, false);
      check_case(test, true);
    }
  }
}

// The outputs over other inputs, every call recorded once more from its name and attributes.
Tensors recorded_again(const Tensors& inputs, const Tensors& outputs, const Tensors& others) {
  std::map<const SymbolicCall*, Tensors> made;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_symbolic()) made[inputs[i].symbol()->call.get()] = {others[i]};
  }
  const auto other = [&](const Tensor& tensor) {
    return tensor.is_symbolic() ? made.at(tensor.symbol()->call.get()).at(tensor.symbol()->index)
                                : tensor;
  };
  for (const auto& call : calls_between(inputs, outputs)) {
    Tensors fed;
    for (const Tensor& input : call->inputs) fed.push_back(other(input));
    made[call.get()] =
        ops::record_operation(call->op, fed, call->outputs, call->attributes.value());
  }
  Tensors again;
  for (const Tensor& output : outputs) again.push_back(other(output));
  return again;
}

TEST(SymbolicOps, NamesAndAttributesMakeTheSameCalls) {
  for (const auto& cases :
       {elementwise_cases(), shape_cases(), tensor_cases(), tensor_loss_cases()}) {
    for (const Case& test : cases) {
      SCOPED_TRACE(test.name);
      Graph graph;
      const Graph::AsDefault current(graph);
      const Tensors inputs = symbolic_like(test.inputs, true);
      const Tensors others = symbolic_like(test.inputs, true);
      Model model(others, recorded_again(inputs, test.run(inputs), others));
      const Tensors expected = test.run(test.inputs), computed = model(test.inputs);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(same_bits(computed[i].to_host(), expected[i].to_host()));
      }
    }
  }
  EXPECT_EQ(thrown<ArgumentError>([] { ops::record_operation("nothing", {}, {}, {}); }),
            "[record] 'nothing', expected the name of an operation");
}

TEST(SymbolicOps, WhatIsKnownIsCheckedAtOnce) {
  const Tensor a = Input({-1, 5}), b = Input({3, 4});
  EXPECT_EQ(thrown<ArgumentError>([&] { ops::add(a, b); }),
            "[add] b has shape [3, 4], expected one that broadcasts with [-1, 5] of a");
  EXPECT_EQ(thrown<ArgumentError>([&] { ops::matmul(a, b); }),
            "[matmul] b is float32 of shape [3, 4], expected 5 at dimension 0");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              ops::reshape(b, {5, -1});
            }),
            "[reshape] x is float32 of shape [3, 4], expected as many elements as [5, -1]");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              ops::split(a, 1, {2, 2});
            }),
            "[split] sizes are [2, 2], expected a sum of 5");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              ops::concat({a, Input({-1, 5}, DType::kFloat64)}, 0);
            }),
            "[concat] parts[1] is float64 of shape [-1, 5], expected float32");
  // The sum of what is known and what is not is not known, whichever comes first.
  const Tensor known = Input({2, 3}), open = Input({-1, 3}), wide = Input({2, -1});
  EXPECT_EQ(ops::concat({known, known}, 0).shape(), (Shape{4, 3}));
  EXPECT_EQ(ops::concat({known, open}, 0).shape(), (Shape{-1, 3}));
  EXPECT_EQ(ops::concat({open, known}, 0).shape(), (Shape{-1, 3}));
  EXPECT_EQ(ops::concat({open, known}, 1).shape(), (Shape{2, 6}));
  EXPECT_EQ(ops::concat({wide, known}, 0).shape(), (Shape{4, 3}));
  EXPECT_EQ(ops::concat({wide, known}, 1).shape(), (Shape{2, -1}));
  const std::vector<Tensor> parts = ops::split(Input({5, 3, 4}), 1, {1, 2});
  EXPECT_EQ(parts[0].shape(), (Shape{5, 1, 4}));
  EXPECT_EQ(parts[1].shape(), (Shape{5, 2, 4}));
  EXPECT_EQ(thrown<ArgumentError>([&] { ops::unstack(a); }),
            "[unstack] x has shape [-1, 5], expected a leading dimension that is known");
  EXPECT_EQ(thrown<StateError>([&] { a.to_host(); }),
            "[value] the tensor is symbolic and has no value, expected a computed one: make a "
            "Model of its inputs and outputs and call that");
  EXPECT_EQ(thrown<ArgumentError>([] { Input({-2}); }),
            "[Input] shape is [-2], expected dimensions of 0 or more, or -1 for an unknown one");
}

// A recorded call has no rows yet: which part of a batch they are is said when it runs.
TEST(SymbolicOps, RefuseAKeyOfAPart) {
  const Tensor x = Input({4, 3});
  const DropoutKey part{.seed = 1, .call = 2, .first_row = 4, .whole_batch = 8};
  EXPECT_EQ(
      thrown<ArgumentError>([&] { ops::dropout(x, 0.5, part); }),
      "[dropout] key is of rows from 4 of a batch of 8, expected one of a whole batch, as x is "
      "symbolic");
  EXPECT_EQ(ops::dropout(x, 0.5, {.seed = 1, .call = 2}).shape(), (Shape{4, 3}));
  // A key that is drawn has the part's place of the call that replays it.
  EXPECT_EQ(ops::next_dropout(x, 0.5, [&] { return part; }).shape(), (Shape{4, 3}));
}

// A size that one operand does not say may be said by another.
TEST(SymbolicOps, SizesAreWhatAnyOperandSays) {
  const Tensor open = Input({-1, 3}), known = Input({2, -1}), both = Input({-1, -1});
  for (const Tensors& in : {Tensors{open, known}, Tensors{known, open}}) {
    EXPECT_EQ(ops::add(in[0], in[1]).shape(), (Shape{2, 3}));
    EXPECT_EQ(ops::mean_squared_error(in[0], in[1]).shape(), Shape{});
    EXPECT_EQ(ops::select_rows({true, false}, in[0], in[1]).shape(), (Shape{2, 3}));
    EXPECT_EQ(ops::where(ops::less(in[0], in[1]), in[1], both).shape(), (Shape{2, 3}));
    EXPECT_EQ(ops::einsum("ab,ab->ba", in).shape(), (Shape{3, 2}));
    EXPECT_EQ(ops::einsum("ab,ac->bac", in).shape()[1], 2);
    EXPECT_EQ(ops::concat({in[0], in[1], both}, 1).shape()[0], 2);
    EXPECT_EQ(ops::concat({both, in[0], in[1]}, 0).shape()[1], 3);
    EXPECT_EQ(ops::add_n({both, in[0], both, in[1]}).shape(), (Shape{2, 3}));
    EXPECT_EQ(ops::stack({both, in[0], in[1], both}).shape(), (Shape{4, 2, 3}));
  }
  EXPECT_EQ(ops::einsum("bi,bj->bij", {Input({-1, 3}), Input({2, 4})}).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(ops::einsum("ij,jk->ik", {Input({2, -1}), Input({5, -1})}).shape(), (Shape{2, -1}));
  // A dimension of 1 says nothing of the other side.
  EXPECT_EQ(ops::add(Input({1, 3}), Input({-1, 1})).shape(), (Shape{-1, 3}));
  EXPECT_EQ(ops::add(Input({-1}), Input({1})).shape(), (Shape{-1}));
}

TEST(SymbolicOps, ValuesAreTheSameWithTheirShapeAlone) {
  const Tensor x = random({2, 3}), in = Input({2, 3});
  const Tensor reshaped = ops::reshape(x, {3, 2});
  EXPECT_EQ(reshaped.value().data(), x.value().data());
  EXPECT_TRUE(same_tensor(x, x) && same_tensor(in, in));
  EXPECT_FALSE(same_tensor(x, reshaped));
  EXPECT_FALSE(same_tensor(x, in) || same_tensor(in, Input({2, 3})));
  EXPECT_FALSE(same_tensor(Tensor(), Tensor()));
}

TEST(SymbolicOps, VariablesAreReadWhenTheModelRuns) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable kernel("kernel", random({5, 2}).to_host());
  const Tensor x = random({3, 5}, 9), in = Input({-1, 5});
  Model model({in}, {ops::matmul(in, kernel.read())});
  ASSERT_EQ(model.trainable_weights().size(), 1u);
  kernel.assign(random({5, 2}, 11).to_host().view());
  GradientTape tape;
  const Tensor y = model({x})[0];
  EXPECT_TRUE(same_bits(y.to_host(), ops::matmul(x, kernel.read()).to_host()));
  EXPECT_FALSE(tape.gradient(y, std::vector{kernel})[0].empty());
}

TEST(SymbolicOps, ALongChainNeedsNoDeepStack) {
  const Tensor in = Input({2}, DType::kFloat64);
  Tensor out = in;
  for (int i = 0; i < 20000; ++i) out = ops::add_scalar(out, 1.0);
  Model model({in}, {out});
  const Tensor x = random_tensor({2}, 1, 0.0, 0.0);
  EXPECT_EQ(element(model({x})[0].to_host().view(), 1), 20000.0);
}

TEST(SymbolicOps, ALongChainIsFreedWithoutADeepStack) {
  std::weak_ptr<const Symbol> kept;
  {
    Tensor out = Input({2}, DType::kFloat64);
    kept = out.symbol();
    for (int i = 0; i < 400000; ++i) out = ops::add_scalar(out, 1.0);
    EXPECT_FALSE(kept.expired());
  }
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace openrnn::testing
