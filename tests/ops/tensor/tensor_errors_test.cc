// What functions on tensors refuse, word for word.
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32) {
  return Tensor(Array(dtype, shape).view());
}

struct Refusal {
  std::string said;
  std::function<void()> call;
};

template <class E = ArgumentError>
void expect_refused(const std::vector<Refusal>& cases) {
  for (const Refusal& one : cases) EXPECT_EQ(message_of<E>(one.call), one.said);
}

TEST(TensorErrors, OfAnEquation) {
  const Tensor a = zeros({2, 3}), b = zeros({3, 5}), row = zeros({3});
  const auto of = [](const std::string& equation, const std::string& expected,
                     const std::vector<Tensor>& operands) {
    return Refusal{"[einsum] equation is '" + equation + "', expected " + expected,
                   [=] { ops::einsum(equation, operands); }};
  };
  const std::string operands = "one operand or two, as many as the ";
  expect_refused({
      of("ij", operands + "2 that are given", {a, b}),
      of("ij,jk", operands + "1 that are given", {a}),
      of("ij,jk,k", operands + "3 that are given", {a, b, row}),
      of("", operands + "0 that are given", {}),
      of("i1->i", "letters, ',' and '->', not '1'", {a}),
      of("ij->i@", "letters, ',' and '->', not '@'", {a}),
      of("i[->i", "letters, ',' and '->', not '['", {a}),
      of("ij->ii", "'i' once in the result", {a}),
      of("ij->ik", "'k' of the result in an operand", {a}),
      of("ij,jk->il", "'l' of the result in an operand", {a, b}),
      of("ij,jk", "1 letters for operands[1] of shape [3]", {a, row}),
      of("ijk,jk", "2 letters for operands[0] of shape [2, 3]", {a, b}),
      of("ij,jk", "one size of 'j', not 3 and 2", {a, a}),
  });
  expect_refused({
      {"[einsum] operands[1] is float64, expected float32",
       [=] {
         ops::einsum("ij,jk", {a, zeros({3, 5}, DType::kFloat64)});
       }},
      {"[einsum] operands[1] is int32 of shape [3, 5], expected a floating tensor",
       [=] {
         ops::einsum("ij,jk", {a, zeros({3, 5}, DType::kInt32)});
       }},
  });
  expect_refused<UnsupportedError>({of("...i", "one without '...'", {a}),
                                    of("ij,kk", "'k' once in an operand", {a, zeros({5, 5})})});
  // The first and the last letters of both cases are letters.
  EXPECT_EQ(ops::einsum("aZ,zA->zaAZ", {a, b}).shape(), (Shape{3, 2, 5, 3}));
}

TEST(TensorErrors, OfAlignments) {
  const Tensor logits = zeros({5, 2, 4}), labels = int_tensor({2, 2}, {1, 2, 3, -1});
  const auto of = [&](const std::string& said, const ops::CtcOptions& options) {
    return Refusal{"[ctc_loss] " + said, [=] { ops::ctc_loss(logits, labels, options); }};
  };
  const auto with = [](const std::string& said, const Tensor& x, const Tensor& of_x,
                       bool time_major = true) {
    return Refusal{"[ctc_loss] " + said,
                   [=] { ops::ctc_loss(x, of_x, {.time_major = time_major}); }};
  };
  const std::string shapes = ", expected [T, B, C] or [B, T, C], C at least 1";
  expect_refused({
      with("logits have shape [2, 3]" + shapes, zeros({2, 3}), labels),
      with("logits have shape [5, 2, 0]" + shapes, zeros({5, 2, 0}), labels),
      with("labels are nothing of shape [], expected int32 [2, L]", logits, Tensor()),
      with("labels are float32 of shape [2, 2], expected int32 [2, L]", logits, zeros({2, 2})),
      with("labels are int32 of shape [2], expected int32 [2, L]", logits, int_tensor({2}, {1, 2})),
      with("labels are int32 of shape [2, 2], expected int32 [5, L]", logits, labels, false),
      with("labels[1, 0] is 4, expected 0 to 3 but the blank, 0", logits,
           int_tensor({2, 1}, {1, 4})),
      with("labels[0, 1] is 0, expected 0 to 3 but the blank, 0", logits,
           int_tensor({2, 2}, {1, 0, 1, 1})),
      of("labels[1, 1] is -1, expected 0 to 3 but the blank, 0", {.label_lengths = {1, 2}}),
      of("labels[1, 0] is 3, expected 0 to 3 but the blank, 3", {.blank = -1}),
      of("blank is 4, expected -4 to 3", {.blank = 4}),
      of("blank is -5, expected -4 to 3", {.blank = -5}),
      of("1 logit_lengths, expected 2, one a row", {.logit_lengths = {5}}),
      of("logit_lengths[1] is 6, expected 0 to 5", {.logit_lengths = {5, 6}}),
      of("logit_lengths[0] is -1, expected 0 to 5", {.logit_lengths = {-1, 5}}),
      of("3 label_lengths, expected 2, one a row", {.label_lengths = {1, 1, 1}}),
      of("label_lengths[0] is 3, expected 0 to 2", {.label_lengths = {3, 1}}),
  });
}

TEST(TensorErrors, OfNothing) {
  const Tensor none;
  const auto empty = [](const std::string& call, const std::function<void()>& run) {
    return Refusal{"[" + call + "] x is empty, expected a tensor", run};
  };
  expect_refused({
      empty("argmax", [=] { ops::argmax(none, 0); }),
      empty("argmin", [=] { ops::argmin(none, 0); }),
      empty("cast", [=] { ops::cast(none, DType::kFloat64); }),
      empty("transpose", [=] { ops::transpose(none); }),
      empty("tile", [=] { ops::tile(none, {}); }),
      empty("expand_dims", [=] { ops::expand_dims(none, 0); }),
      empty("squeeze", [=] { ops::squeeze(none); }),
      empty("strided_slice", [=] { ops::strided_slice(none, {}); }),
      empty("gather", [=] { ops::gather(none, int_tensor({1}, {0})); }),
      empty("broadcast_to", [=] { ops::broadcast_to(none, {2}); }),
      empty("reshape", [=] { ops::reshape(none, {2}); }),
      {"[logical_not] a tensor is empty, expected values", [=] { ops::logical_not(none); }},
      {"[where] a tensor is empty, expected values",
       [=] { ops::where(none, zeros({2}), zeros({2})); }},
      {"[concat] no parts, expected at least one", [] { ops::concat({}, 0); }},
      {"[stack] no parts, expected at least one", [] { ops::stack({}); }},
      {"[argmin] x has shape [2, 0], expected at least one element along axis -1",
       [] {
         ops::argmin(zeros({2, 0}), -1);
       }},
  });
}

TEST(TensorErrors, OfShapesAndAxes) {
  const Tensor x = zeros({2, 3});
  expect_refused({
      {"[tile] multiples are [1], expected 2 of 0 or above, one an axis",
       [=] { ops::tile(x, {1}); }},
      {"[tile] multiples are [-1, 2], expected 2 of 0 or above, one an axis",
       [=] {
         ops::tile(x, {-1, 2});
       }},
      {"[squeeze] x has shape [2, 3], expected 1 along axis 1", [=] { ops::squeeze(x, {-1}); }},
      {"[squeeze] x has shape [-1, 3], expected sizes that are known, or axes",
       [] {
         ops::squeeze(Input({-1, 3}));
       }},
      {"[strided_slice] step is 0, expected another", [=] { ops::strided_slice(x, {.step = 0}); }},
      {"[strided_slice] axis is 2, expected -2 to 1", [=] { ops::strided_slice(x, {.axis = 2}); }},
      {"[expand_dims] axis is 3, expected -3 to 2", [=] { ops::expand_dims(x, 3); }},
      {"[transpose] perm is [0, 0], expected each of the 2 axes once",
       [=] {
         ops::transpose(x, {0, 0});
       }},
      {"[gather] x is int32 of shape [2], expected a floating tensor",
       [] {
         ops::gather(int_tensor({2}, {1, 2}), int_tensor({1}, {0}));
       }},
      {"[gather] indices[0] is 3, expected at least 0 and below 3",
       [=] { ops::gather(x, int_tensor({1}, {3}), 1); }},
      {"[reduce_sum] axis is [0, -2], expected each axis once",
       [=] {
         ops::reduce_sum(x, {.axes = {{0, -2}}});
       }},
      {"[reduce_max] axis is 0, expected a tensor with dimensions",
       [] { ops::reduce_max(zeros({}), {.axes = {{0}}}); }},
      {"[unstack] axis is 0, expected a tensor with dimensions", [] { ops::unstack(zeros({})); }},
      {"[unstack] x has shape [-1, 2], expected a leading dimension that is known",
       [] {
         ops::unstack(Input({-1, 2}));
       }},
      {"[broadcast_to] x has shape [3], expected one that broadcasts to [2]",
       [] { ops::broadcast_to(zeros({3}), {2}); }},
      {"[broadcast_to] x has shape [1, 2], expected one that broadcasts to [2]",
       [] {
         ops::broadcast_to(zeros({1, 2}), {2});
       }},
      {"[sum_to] shape is [2], expected one that broadcasts to [3] of x",
       [] { ops::sum_to(zeros({3}), {2}); }},
      {"[embedding_lookup] table has shape [3], expected 2 dimensions",
       [] { ops::embedding_lookup(zeros({3}), int_tensor({1}, {0})); }},
      {"[one_hot] depth is 0 and dtype float32, expected at least 1 and a floating dtype",
       [] { ops::one_hot(int_tensor({1}, {0}), 0, DType::kFloat32); }},
      {"[one_hot] depth is 2 and dtype int64, expected at least 1 and a floating dtype",
       [] { ops::one_hot(int_tensor({1}, {0}), 2, DType::kInt64); }},
      {"[binary_cross_entropy] epsilon is -0.1, expected 0 to below 0.5",
       [=] { ops::binary_cross_entropy_rows(x, x, -0.1); }},
  });
}

TEST(TensorErrors, OfStacksOfMatrices) {
  const Tensor a = zeros({2, 3, 4}), row = zeros({4}), wide = zeros({4, 5}, DType::kFloat64);
  const auto of = [](std::string said, const Tensor& x, const Tensor& y, bool ta, bool tb) {
    return Refusal{"[matmul] " + said,
                   [=] { ops::matmul(x, y, {.transpose_a = ta, .transpose_b = tb}); }};
  };
  expect_refused({
      of("b has shape [4], expected at least 2 dimensions", a, row, false, false),
      of("a has shape [4], expected at least 2 dimensions", row, a, false, false),
      of("b is float64, expected float32", a, wide, false, false),
      of("b has shape [3, 5], expected 4 at dimension 0 for a of shape [2, 3, 4]", a, zeros({3, 5}),
         false, false),
      of("b has shape [4, 5], expected 3 at dimension 0 for a of shape [2, 3, 4]", a, zeros({4, 5}),
         true, false),
      of("b has shape [4, 5], expected 4 at dimension 1 for a of shape [2, 3, 4]", a, zeros({4, 5}),
         false, true),
      of("b has shape [2, 5, 4], expected 3 at dimension 2 for a of shape [2, 3, 4]", a,
         zeros({2, 5, 4}), true, true),
      of("b has shape [2, 5, 4], expected 4 at dimension 1 for a of shape [2, 3, 4]", a,
         zeros({2, 5, 4}), false, false),
  });
}

TEST(TensorErrors, OfSymbolicTensors) {
  const Tensor x = Input({2, 3}), wide = Input({2, 3}, DType::kFloat64);
  expect_refused({
      {"[add_row] row is float32 of shape [2], expected one dimension, the last of [2, 3]",
       [=] { ops::add_row(x, Input({2})); }},
      {"[add_row] row is float64 of shape [3], expected float32",
       [=] { ops::add_row(x, Input({3}, DType::kFloat64)); }},
      {"[matmul] a is float32 of shape [2], expected 2 dimensions",
       [=] { ops::matmul(Input({2}), x); }},
      {"[matmul] b is float32 of shape [2], expected 2 dimensions",
       [=] { ops::matmul(x, Input({2})); }},
      {"[matmul] b is float32 of shape [4, 5], expected 3 at dimension 0",
       [=] {
         ops::matmul(x, Input({4, 5}));
       }},
      {"[matmul] b is float32 of shape [4, 5], expected 3 at dimension 1",
       [=] {
         ops::matmul(x, Input({4, 5}), {.transpose_b = true});
       }},
      {"[matmul] b is float32 of shape [4, 5], expected 2 at dimension 0",
       [=] {
         ops::matmul(x, Input({4, 5}), {.transpose_a = true});
       }},
      {"[dense] kernel is float32 of shape [2, 5], expected [I, N] for x [.., I] of shape [2, 3]",
       [=] {
         ops::dense(x, Input({2, 5}));
       }},
      {"[reshape] shape is [-1, -1], expected at most one dimension of -1",
       [=] {
         ops::reshape(x, {-1, -1});
       }},
      {"[concat] b is float32 of shape [2, 4], expected the shape [2, 3] of a",
       [=] {
         ops::concat({x, Input({2, 4})}, 0);
       }},
      {"[concat] parts[1] is float64 of shape [2, 3], expected float32",
       [=] {
         ops::concat({x, wide}, 0);
       }},
      {"[stack] b is float64 of shape [2, 3], expected float32",
       [=] {
         ops::stack({x, wide});
       }},
      {"[one_hot] indices is float32 of shape [2, 3], expected int32",
       [=] { ops::one_hot(x, 3, DType::kFloat32); }},
      {"[softmax_cross_entropy] labels is int32 of shape [3], expected the shape of the rows of "
       "[2, 3]",
       [=] { ops::softmax_cross_entropy(x, Input({3}, DType::kInt32)); }},
      {"[softmax_cross_entropy_rows] labels is float32 of shape [2], expected int32",
       [=] { ops::softmax_cross_entropy_rows(x, Input({2})); }},
      {"[less] b is float64, expected float32", [=] { ops::less(x, wide); }},
      {"[greater] b is float64, expected float32", [=] { ops::greater(x, wide); }},
      {"[greater_equal] b is float64, expected float32", [=] { ops::greater_equal(x, wide); }},
  });
}

TEST(TensorErrors, OfSymbolicRanksAndTypes) {
  const Tensor x = Input({2, 3}), open = Input({-1, 3}), number = Input(Shape{});
  const Tensor whole = Input({2, 3}, DType::kInt32), wide = Input({3, 4}, DType::kFloat64);
  expect_refused({
      {"[add_row] row is float32 of shape [3], expected one dimension, the last of []",
       [=] { ops::add_row(number, Input({3})); }},
      {"[add_row] row is float32 of shape [1, 3], expected one dimension, the last of [2, 3]",
       [=] {
         ops::add_row(x, Input({1, 3}));
       }},
      {"[matmul] b is float64 of shape [3, 4], expected float32", [=] { ops::matmul(x, wide); }},
      {"[dense] kernel is float64 of shape [3, 4], expected float32", [=] { ops::dense(x, wide); }},
      {"[dense] kernel is float32 of shape [3], expected [I, N] for x [.., I] of shape [2, 3]",
       [=] { ops::dense(x, Input({3})); }},
      {"[dense] kernel is float32 of shape [2, 3], expected [I, N] for x [.., I] of shape []",
       [=] { ops::dense(number, x); }},
      {"[concat] b is float32 of shape [2], expected the shape [2, 3] of a",
       [=] {
         ops::concat({x, Input({2})}, 0);
       }},
      {"[concat] axis is 2, expected -2 to 1",
       [=] {
         ops::concat({x, x}, 2);
       }},
      {"[split] sizes are [4, -1], expected a sum of 3",
       [=] {
         ops::split(x, 1, {4, -1});
       }},
      {"[split] sizes are [1, -2], expected a sum of -1",
       [=] {
         ops::split(open, 0, {1, -2});
       }},
      {"[slice] begin is -1 and size 1, expected a range within 0 to -1",
       [=] { ops::slice(open, {.axis = 0, .begin = -1, .size = 1}); }},
      {"[slice] begin is 1 and size -1, expected a range within 0 to -1",
       [=] { ops::slice(open, {.axis = 0, .begin = 1, .size = -1}); }},
      {"[embedding_lookup] indices is float32 of shape [2, 3], expected int32",
       [=] {
         ops::embedding_lookup(zeros({5, 4}), x);
       }},
      {"[softmax_cross_entropy] labels is int32 of shape [2, 3], expected the shape of the rows of "
       "[2, 3]",
       [=] { ops::softmax_cross_entropy(x, whole); }},
      {"[softmax_cross_entropy] logits is int32 of shape [2, 3], expected a floating tensor",
       [=] { ops::softmax_cross_entropy(whole, Input({2}, DType::kInt32)); }},
      {"[relu] x is int32 of shape [2, 3], expected a floating tensor", [=] { ops::relu(whole); }},
      {"[select_rows] b is float64 of shape [3, 4], expected float32",
       [=] {
         ops::select_rows({true, false}, x, wide);
       }},
      {"[select_rows] b is float32 of shape [3, 2], expected the shape [2, 3] of a",
       [=] {
         ops::select_rows({true, false}, x, Input({3, 2}));
       }},
  });
  // What is not known is not refused.
  EXPECT_EQ(ops::slice(open, {.axis = 0, .begin = 5, .size = 2}).shape(), (Shape{2, 3}));
  EXPECT_EQ(ops::split(open, 0, {1, 2})[1].shape(), (Shape{2, 3}));
  EXPECT_EQ(ops::softmax_cross_entropy_rows(open, Input({4}, DType::kInt32)).shape(), Shape{4});
}

TEST(TensorErrors, OfRecurrentCalls) {
  const RnnSpec lstm{.num_units = 4, .input_size = 3};
  const RnnSpec gru{.mode = RnnMode::kGru, .num_units = 4, .input_size = 3};
  const std::string size = std::to_string(params_size(gru));
  const Tensor x = zeros({5, 2, 3}), state = zeros({1, 2, 4}), params = zeros({params_size(gru)});
  const auto of = [](const RnnSpec& spec, const ops::RnnInputs& in) {
    return [=] { ops::rnn(spec, in, nullptr); };
  };
  expect_refused({
      {"[f] input_data has rank 2 (shape [5, 3]), expected rank 3: [time, batch, 3]",
       of(gru, {.x = zeros({5, 3}), .params = params, .call = "f"})},
      {"[rnn] input_data has rank 2 (shape [5, 3]), expected rank 3: [batch, time, 3]",
       of(gru, {.x = zeros({5, 3}), .params = params, .time_major = false})},
      {"[rnn] input_data has shape [5, 2, 4], expected a last dimension of 3",
       of(gru, {.x = zeros({5, 2, 4}), .params = params})},
      {"[rnn] input_data is float64, expected float32",
       of(gru, {.x = zeros({5, 2, 3}, DType::kFloat64), .params = params})},
      {"[rnn] input_c is given, expected none for gru",
       of(gru, {.x = x, .h0 = state, .c0 = state, .params = params})},
      {"[rnn] params is empty, expected " + size + " elements", of(gru, {.x = x})},
      {"[rnn] input_h has shape [1, 2, 3], expected [2, 1, 4] for " + describe(gru) +
           ", batch-major",
       of(gru,
          {.x = zeros({2, 5, 3}), .h0 = zeros({1, 2, 3}), .params = params, .time_major = false})},
      {"[rnn] input_c has shape [1, 3, 4], expected [1, 2, 4] for " + describe(lstm) +
           ", time-major",
       of(lstm, {.x = x, .c0 = zeros({1, 3, 4}), .params = zeros({params_size(lstm)})})},
      {"[rnn] input_h is float64, expected float32",
       of(gru, {.x = x, .h0 = zeros({1, 2, 4}, DType::kFloat64), .params = params})},
      {"[rnn] sequence_lengths[1] is 6, expected 0 to 5",
       of(gru, {.x = x, .params = params, .sequence_lengths = {{5, 6}}})},
      {"[rnn] params is float32 of shape [7], expected float32 of 1 dimension and at least " +
           size + " elements for " + describe(gru),
       of(gru, {.x = Input({5, 2, 3}), .params = Input({7})})},
      {"[rnn] input_h is float32 of shape [1, 3, 4], expected float32 of shape [1, 2, 4] for " +
           describe(gru),
       of(gru, {.x = Input({5, 2, 3}), .h0 = Input({1, 3, 4}), .params = params})},
  });
  expect_refused<UnsupportedError>(
      {{"[rnn] mask and reset of a symbolic call, expected values, or sequence_lengths",
        of(gru, {.x = Input({5, 2, 3}), .params = params, .flags = {.mask = {true}}})},
       {"[rnn] mask and reset of a symbolic call, expected values, or sequence_lengths",
        of(gru, {.x = Input({5, 2, 3}), .params = params, .flags = {.reset = {true}}})}});
}

}  // namespace
}  // namespace openrnn::testing
