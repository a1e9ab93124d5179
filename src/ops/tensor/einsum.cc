// Sums of products that letters name: a transpose of each operand, and products of matrices.
#include <algorithm>

#include "ops/support/support.h"
#include "ops/symbolic/replay.h"
#include "ops/symbolic/shapes.h"
#include "ops/tensor/product.h"

namespace openrnn::ops {
namespace {

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

[[noreturn]] void fail(const std::string& equation, const std::string& expected) {
  throw ArgumentError(message("[einsum] equation is '", equation, "', expected ", expected));
}

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

// Letters that occur once, in alphabetical order.
std::string implied(const std::vector<std::string>& operands) {
  std::string all, once;
  for (const std::string& letters : operands) all += letters;
  std::sort(all.begin(), all.end());
  for (const char letter : all) {
    if (std::count(all.begin(), all.end(), letter) == 1) once += letter;
  }
  return once;
}

void check_letters(const std::string& equation, const std::string& letters, bool result) {
  for (const char letter : letters) {
    const bool known = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (letter == '.') {
      throw UnsupportedError(
          message("[einsum] equation is '", equation, "', expected one without '...'"));
    }
    if (!known) fail(equation, message("letters, ',' and '->', not '", letter, "'"));
    if (std::count(letters.begin(), letters.end(), letter) == 1) continue;
    if (result) fail(equation, message("'", letter, "' once in the result"));
    throw UnsupportedError(message("[einsum] equation is '", equation, "', expected '", letter,
                                   "' once in an operand"));
  }
}

Equation parsed(const std::string& equation, std::size_t operands) {
  std::string text;
  for (const char c : equation) {
    if (c != ' ') text += c;
  }
  const std::size_t arrow = text.find("->");
  Equation found{.operands = {""}, .result = {}};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      found.operands.emplace_back();
    } else {
      found.operands.back() += c;
    }
  }
  if (found.operands.size() != operands || operands < 1 || operands > 2) {
    fail(equation, message("one operand or two, as many as the ", operands, " that are given"));
  }
  for (const std::string& letters : found.operands) check_letters(equation, letters, false);
  found.result = arrow == std::string::npos ? implied(found.operands) : text.substr(arrow + 2);
  check_letters(equation, found.result, true);
  for (const char letter : found.result) {
    if (has(found.operands[0], letter) || (operands > 1 && has(found.operands[1], letter)))
      continue;
    fail(equation, message("'", letter, "' of the result in an operand"));
  }
  return found;
}

// The size of each letter.
std::map<char, std::int64_t> sizes_of(const std::string& equation, const Equation& letters,
                                      const std::vector<Tensor>& operands) {
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    require_floating("einsum", message("operands[", i, "]"), operands[i]);
    const std::string& names = letters.operands[i];
    const Shape& shape = operands[i].shape();
    if (names.size() != shape.size()) {
      fail(equation,
           message(shape.size(), " letters for operands[", i, "] of shape ", to_string(shape)));
    }
    for (std::size_t d = 0; d < names.size(); ++d) {
      const auto [known, added] = sizes.emplace(names[d], shape[d]);
      if (!dims_fit(known->second, shape[d])) {
        fail(equation,
             message("one size of '", names[d], "', not ", known->second, " and ", shape[d]));
      }
      if (known->second < 0) known->second = shape[d];
    }
  }
  return sizes;
}

// x, whose dimensions are `names`, with those of `order`, others summed over.
Tensor arranged(const Tensor& x, const std::string& names, const std::string& order) {
  Axes gone, perm;
  std::string left;
  for (std::size_t d = 0; d < names.size(); ++d) {
    if (has(order, names[d])) {
      left += names[d];
    } else {
      gone.push_back(static_cast<std::int64_t>(d));
    }
  }
  Tensor result = x;
  if (!gone.empty()) {
    const Tensor sum = reduce_sum(x, {.axes = gone});
    result = sum.dtype() == x.dtype() ? sum : cast(sum, x.dtype());
  }
  for (const char letter : order) perm.push_back(static_cast<std::int64_t>(left.find(letter)));
  return left == order ? result : transpose(result, perm);
}

Tensor product_of(const Equation& letters, const std::vector<Tensor>& operands,
                  const std::map<char, std::int64_t>& sizes) {
  const std::string &a = letters.operands[0], &b = letters.operands[1];
  std::string stacks, rows, cols, summed;
  for (const char letter : a) {
    const bool shared = has(b, letter), kept = has(letters.result, letter);
    if (shared) (kept ? stacks : summed) += letter;
    if (!shared && kept) rows += letter;
  }
  for (const char letter : b) {
    if (!has(a, letter) && has(letters.result, letter)) cols += letter;
  }
  const auto size = [&sizes](const std::string& names) {
    std::int64_t product = 1;
    for (const char letter : names) product *= sizes.at(letter);
    return product;
  };
  const Tensor left = reshape(arranged(operands[0], a, stacks + rows + summed),
                              {size(stacks), size(rows), size(summed)});
  const Tensor right = reshape(arranged(operands[1], b, stacks + summed + cols),
                               {size(stacks), size(summed), size(cols)});
  Shape shape;
  const std::string order = stacks + rows + cols;
  for (const char letter : order) shape.push_back(sizes.at(letter));
  return arranged(reshape(matmul_stacks(left, right, {}), shape), order, letters.result);
}

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands) {
  const Equation letters = parsed(equation, operands.size());
  const std::map<char, std::int64_t> sizes = sizes_of(equation, letters, operands);
  if (operands.size() == 2 && operands[0].dtype() != operands[1].dtype()) {
    throw ArgumentError(message("[einsum] operands[1] is ", dtype_name(operands[1].dtype()),
                                ", expected ", dtype_name(operands[0].dtype())));
  }
  if (any_symbolic(operands)) {
    Shape shape;
    for (const char letter : letters.result) shape.push_back(sizes.at(letter));
    return defer_one("einsum", {operands[0].dtype(), shape}, std::string_view(equation), operands);
  }
  if (operands.size() == 1) return arranged(operands[0], letters.operands[0], letters.result);
  if (apart(operands[0], operands[1])) {
    const std::array<Tensor, 2> in = together("einsum", operands[0], operands[1]);
    return einsum(equation, {in[0], in[1]});
  }
  return product_of(letters, operands, sizes);
}

}  // namespace openrnn::ops
