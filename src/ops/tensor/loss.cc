// Losses of two classes.
#include "base/message.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

Tensor one_minus(const Tensor& x) { return add_scalar(negate(x), 1.0); }

}  // namespace

Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& labels) {
  if (any_symbolic(logits, labels)) {
    return defer_one("sigmoid_cross_entropy",
                     infer::broadcast("sigmoid_cross_entropy", logits, labels), logits, labels);
  }
  // Neither term cancels the other, however large the logit.
  return add(multiply(labels, softplus(negate(logits))),
             multiply(one_minus(labels), softplus(logits)));
}

Tensor binary_cross_entropy_rows(const Tensor& probabilities, const Tensor& labels,
                                 double epsilon) {
  if (!(epsilon >= 0.0 && epsilon < 0.5)) {
    throw ArgumentError(
        message("[binary_cross_entropy] epsilon is ", epsilon, ", expected 0 to below 0.5"));
  }
  if (any_symbolic(probabilities, labels)) {
    return defer_one("binary_cross_entropy",
                     infer::broadcast("binary_cross_entropy", probabilities, labels), probabilities,
                     labels, epsilon);
  }
  // Each by itself: 1 - epsilon may round to 1, of which one_minus would be 0.
  const Tensor p = clip(probabilities, epsilon, 1.0 - epsilon);
  const Tensor q = clip(one_minus(probabilities), epsilon, 1.0 - epsilon);
  return negate(add(multiply(labels, log(p)), multiply(one_minus(labels), log(q))));
}

}  // namespace openrnn::ops
