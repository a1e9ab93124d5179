#include "ops/tensor/ctc.h"

#include <algorithm>
#include <cmath>

#include "openrnn/base.h"

namespace openrnn::ops {
namespace {

using Row = std::vector<double>;

double log_of_sum(double a, double b) {
  const double top = std::max(a, b);
  if (top == -HUGE_VAL) return top;
  return top + portable_log(1.0 + portable_exp(std::min(a, b) - top));
}

// Labels with blanks around each: 2 L + 1 places.
std::vector<std::int32_t> extended(const CtcRow& row) {
  std::vector<std::int32_t> places{static_cast<std::int32_t>(row.blank)};
  for (const std::int32_t label : row.labels) {
    places.push_back(label);
    places.push_back(static_cast<std::int32_t>(row.blank));
  }
  return places;
}

// Whether an alignment may come to place s from s - 2: over a blank between two other labels.
bool skips(const CtcRow& row, const std::vector<std::int32_t>& places, std::size_t s) {
  return s >= 2 && places[s] != row.blank && places[s] != places[s - 2];
}

// alpha[t][s]: of all beginnings that end at step t in place s, that step included.
std::vector<Row> forward(const CtcRow& row, const std::vector<std::int32_t>& places) {
  std::vector<Row> alpha(static_cast<std::size_t>(row.steps), Row(places.size(), -HUGE_VAL));
  for (std::size_t t = 0; t < alpha.size(); ++t) {
    const double* const step = row.log_probabilities + static_cast<std::int64_t>(t) * row.stride;
    for (std::size_t s = 0; s < places.size(); ++s) {
      double sum = t == 0 ? (s < 2 ? 0.0 : -HUGE_VAL) : alpha[t - 1][s];
      if (t > 0 && s >= 1) sum = log_of_sum(sum, alpha[t - 1][s - 1]);
      if (t > 0 && skips(row, places, s)) sum = log_of_sum(sum, alpha[t - 1][s - 2]);
      alpha[t][s] = sum + step[places[s]];
    }
  }
  return alpha;
}

// Of all ends that begin after step t in place s, that step not included; from the one of t + 1.
Row backward(const CtcRow& row, const std::vector<std::int32_t>& places, std::int64_t t,
             const Row& next) {
  Row beta(places.size(), -HUGE_VAL);
  if (t + 1 == row.steps) {
    for (std::size_t s = places.size() - std::min<std::size_t>(2, places.size()); s < places.size();
         ++s) {
      beta[s] = 0.0;
    }
    return beta;
  }
  const double* const step = row.log_probabilities + (t + 1) * row.stride;
  for (std::size_t s = 0; s < places.size(); ++s) {
    double sum = next[s] + step[places[s]];
    if (s + 1 < places.size()) sum = log_of_sum(sum, next[s + 1] + step[places[s + 1]]);
    if (s + 2 < places.size() && skips(row, places, s + 2)) {
      sum = log_of_sum(sum, next[s + 2] + step[places[s + 2]]);
    }
    beta[s] = sum;
  }
  return beta;
}

}  // namespace

double ctc_row(const CtcRow& row, double* gradient) {
  if (row.steps == 0) return row.labels.empty() ? 0.0 : HUGE_VAL;
  const std::vector<std::int32_t> places = extended(row);
  const std::vector<Row> alpha = forward(row, places);
  const Row& last = alpha.back();
  const double total =
      log_of_sum(last.back(), places.size() > 1 ? last[last.size() - 2] : -HUGE_VAL);
  if (!gradient || total == -HUGE_VAL) return -total;
  // p - the share of alignments that have class c at step t.
  Row beta;
  for (std::int64_t t = row.steps; t-- > 0;) {
    beta = backward(row, places, t, beta);
    Row shares(static_cast<std::size_t>(row.classes), -HUGE_VAL);
    for (std::size_t s = 0; s < places.size(); ++s) {
      double& share = shares[static_cast<std::size_t>(places[s])];
      share = log_of_sum(share, alpha[static_cast<std::size_t>(t)][s] + beta[s]);
    }
    for (std::int64_t c = 0; c < row.classes; ++c) {
      const std::int64_t at = t * row.stride + c;
      gradient[at] = portable_exp(row.log_probabilities[at]) -
                     portable_exp(shares[static_cast<std::size_t>(c)] - total);
    }
  }
  return -total;
}

}  // namespace openrnn::ops
