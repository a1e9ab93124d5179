// Tables of ONNX programs as wholes: operators and their attributes, casts between all types,
// operands of all types that are broadcast.
#include <openrnn/base.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "onnx/operator_call.h"

namespace openrnn {
namespace {

using Names = std::vector<std::string>;

TEST(OnnxTables, Operators) {
  EXPECT_EQ(onnx_operators(), (Names{"Abs",
                                     "Add",
                                     "Cast",
                                     "Clip",
                                     "Concat",
                                     "Constant",
                                     "ConstantOfShape",
                                     "Conv",
                                     "Div",
                                     "Dropout",
                                     "Elu",
                                     "Exp",
                                     "Expand",
                                     "Flatten",
                                     "GRU",
                                     "Gather",
                                     "Gemm",
                                     "HardSigmoid",
                                     "Identity",
                                     "LSTM",
                                     "LeakyRelu",
                                     "Log",
                                     "LogSoftmax",
                                     "MatMul",
                                     "Mul",
                                     "Neg",
                                     "Pad",
                                     "Pow",
                                     "RNN",
                                     "ReduceMean",
                                     "Relu",
                                     "Reshape",
                                     "Shape",
                                     "Sigmoid",
                                     "Size",
                                     "Slice",
                                     "Softmax",
                                     "Softplus",
                                     "Softsign",
                                     "Split",
                                     "Sqrt",
                                     "Squeeze",
                                     "Sub",
                                     "Tanh",
                                     "Transpose",
                                     "Unsqueeze"}));
}

// Whether a program is made of one node with these attributes, whatever their values are; what is
// not known is refused by name.
bool heeds(const std::string& op, const Names& attributes) {
  OnnxModel model;
  model.opsets[""] = 14;
  OnnxNode node{.name = "n", .op_type = op, .inputs = {"a", "b", "c"}, .outputs = {"y"}};
  for (const std::string& name : attributes) node.attributes.push_back({name, std::int64_t{1}});
  model.graph.inputs = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  model.graph.outputs = {{.name = "y"}};
  model.graph.nodes = {node};
  try {
    OnnxProgram program(model);
  } catch (const UnsupportedError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("[onnx] node 'n' (" + op + "): the attribute "), 0U) << what;
    return what.find(" is not known, expected those of ONNX's operator") == std::string::npos;
  }
  return true;
}

// Without the 16 operators that move elements, Cast to Unsqueeze: they read the attributes that
// they know when they run, and pass over all others.
const std::map<std::string, Names>& known_attributes() {
  const Names recurrent{"activation_alpha", "activation_beta",    "activations",  "clip",
                        "direction",        "hidden_size",        "input_forget", "layout",
                        "output_sequence",  "linear_before_reset"};
  static const std::map<std::string, Names> kKnown{
      {"Abs", {}},
      {"Add", {}},
      {"Clip", {"max", "min"}},
      {"Conv", {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}},
      {"Div", {}},
      {"Dropout", {"is_test", "ratio", "seed"}},
      {"Elu", {"alpha"}},
      {"Exp", {}},
      {"GRU", recurrent},
      {"Gemm", {"alpha", "beta", "transA", "transB"}},
      {"HardSigmoid", {"alpha", "beta"}},
      {"LSTM", recurrent},
      {"LeakyRelu", {"alpha"}},
      {"Log", {}},
      {"LogSoftmax", {"axis"}},
      {"MatMul", {}},
      {"Mul", {}},
      {"Neg", {}},
      {"Pad", {"mode", "pads", "value"}},
      {"Pow", {}},
      {"RNN", recurrent},
      {"ReduceMean", {"axes", "keepdims", "noop_with_empty_axes"}},
      {"Relu", {}},
      {"Sigmoid", {}},
      {"Softmax", {"axis"}},
      {"Softplus", {}},
      {"Softsign", {}},
      {"Sqrt", {}},
      {"Sub", {}},
      {"Tanh", {}},
  };
  return kKnown;
}

TEST(OnnxTables, AttributesOfEachOperator) {
  std::set<std::string> all{"bogus", "to", "perm", ""};
  for (const auto& [op, names] : known_attributes()) all.insert(names.begin(), names.end());
  for (const auto& [op, names] : known_attributes()) {
    const bool recurrent = op == "RNN" || op == "GRU" || op == "LSTM";
    for (const std::string& name : all) {
      const bool known = std::ranges::find(names, name) != names.end();
      EXPECT_EQ(heeds(op, {name}), known) << op << " " << name;
    }
    // It says nothing, and only operators of the first versions have it.
    EXPECT_EQ(heeds(op, {"consumed_inputs"}), !recurrent) << op;
    // The one that is not known may stand anywhere.
    for (const std::string& name : names) {
      EXPECT_FALSE(heeds(op, {name, "bogus"})) << op << " " << name;
      EXPECT_FALSE(heeds(op, {"bogus", name})) << op << " " << name;
    }
    if (names.size() > 1) {
      EXPECT_FALSE(heeds(op, {names[0], names[1], "bogus"})) << op;
    }
  }
  int moves = 0;
  for (const std::string& op : onnx_operators()) {
    if (known_attributes().contains(op)) continue;
    ++moves;
    EXPECT_TRUE(heeds(op, {"bogus"})) << op;
  }
  EXPECT_EQ(moves, 16);
}

// ---- Casts -------------------------------------------------------------------------------------

constexpr std::pair<DType, std::int64_t> kTypes[] = {
    {DType::kFloat32, 1}, {DType::kUInt8, 2},    {DType::kInt32, 6},    {DType::kInt64, 7},
    {DType::kBool, 9},    {DType::kFloat16, 10}, {DType::kFloat64, 11}, {DType::kBfloat16, 16}};

template <class T>
Array array_of(const std::vector<T>& values) {
  return Array::of<T>({static_cast<std::int64_t>(values.size())}, values);
}

// Numbers of each type, among them those between two of a narrower one, and its ends.
Array numbers_of(DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (dtype) {
    case DType::kInt32:
      return array_of<std::int32_t>({0, 1, -5, 255, 256, 300, -70000, INT32_MAX, INT32_MIN});
    case DType::kInt64:
      return array_of<std::int64_t>({0, 1, -5, 300, -257, (std::int64_t{1} << 31) + 5,
                                     -(std::int64_t{1} << 40) - 7, 16777217, 33554435});
    case DType::kUInt8:
      return array_of<std::uint8_t>({0, 1, 2, 127, 128, 255});
    case DType::kBool: {
      Array flags(DType::kBool, {3});
      flags.as<bool>()[1] = true;
      return flags;
    }
    default: {
      // Of float64 the second and third round twice by way of float32.
      const Array wide = array_of<double>({0.0,
                                           1.0 + 0x1p-11 + 0x1p-40,
                                           1.0 + 0x1p-8 + 0x1p-40,
                                           -0.0,
                                           -0.25,
                                           0.75,
                                           1.0,
                                           -1.0,
                                           -3.75,
                                           2.5,
                                           254.9,
                                           255.5,
                                           256.0,
                                           -256.5,
                                           70000.0,
                                           2147483647.0,
                                           -2147483649.0,
                                           3e9,
                                           0x1p63,
                                           -0x1p63,
                                           1e30,
                                           -1e30,
                                           1e-30,
                                           kInfinity,
                                           -kInfinity,
                                           std::nan("")});
      return cast(wide.view(), dtype);
    }
  }
}

template <class T>
T whole_of(double value) {
  if (std::isnan(value)) return 0;
  const double cut = std::trunc(value);
  if (cut >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  if (cut <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(cut);
}

// By the words of the documentation: floating numbers are rounded once, or cut off and kept in the
// range; integers lose their upper bits.
Array expected_cast(const Array& x, DType dtype) {
  const bool floating = is_floating(x.dtype());
  Array out(dtype, x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::int64_t whole = 0;
    if (x.dtype() == DType::kInt64) whole = x.as<std::int64_t>()[at];
    if (x.dtype() == DType::kInt32) whole = x.as<std::int32_t>()[at];
    if (x.dtype() == DType::kUInt8) whole = x.as<std::uint8_t>()[at];
    if (x.dtype() == DType::kBool) whole = x.as<bool>()[at] ? 1 : 0;
    const double real = floating ? element(x.view(), i) : static_cast<double>(whole);
    if (dtype == DType::kFloat16) out.as<Half>()[at] = to_half(real);
    if (dtype == DType::kBfloat16) out.as<Bfloat16>()[at] = to_bfloat16(real);
    if (dtype == DType::kFloat32) out.as<float>()[at] = static_cast<float>(real);
    if (dtype == DType::kFloat64) out.as<double>()[at] = real;
    if (dtype == DType::kBool) out.as<bool>()[at] = real != 0.0;
    if (dtype == DType::kUInt8) {
      out.as<std::uint8_t>()[at] =
          floating ? whole_of<std::uint8_t>(real) : static_cast<std::uint8_t>(whole);
    }
    if (dtype == DType::kInt32) {
      out.as<std::int32_t>()[at] =
          floating ? whole_of<std::int32_t>(real) : static_cast<std::int32_t>(whole);
    }
    if (dtype == DType::kInt64) {
      out.as<std::int64_t>()[at] = floating ? whole_of<std::int64_t>(real) : whole;
    }
  }
  return out;
}

TEST(OnnxTables, CastsBetweenAllTypes) {
  for (const auto& from : kTypes) {
    const Array x = numbers_of(from.first);
    for (const auto& [dtype, code] : kTypes) {
      const Array found = Call{"Cast", {x}, {{"to", code}}}.run()[0];
      const Array expected = expected_cast(x, dtype);
      ASSERT_EQ(found.dtype(), dtype);
      ASSERT_EQ(found.shape(), x.shape());
      const std::size_t width = dtype_size(dtype);
      for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
        EXPECT_EQ(std::memcmp(static_cast<const char*>(found.data()) + i * width,
                              static_cast<const char*>(expected.data()) + i * width, width),
                  0)
            << dtype_name(from.first) << " to " << dtype_name(dtype) << " at " << i;
      }
    }
  }
}

// ---- Operands ----------------------------------------------------------------------------------

Array cast_to(const Array& x, DType dtype) {
  for (const auto& [one, code] : kTypes) {
    if (one == dtype) return Call{"Cast", {x}, {{"to", code}}}.run()[0];
  }
  return x;
}

// Of equal size and other shapes; one inside the other; with an empty axis.
TEST(OnnxTables, OperandsOfEachTypeAreBroadcast) {
  const Array column = floats({3, 1}, {12, -8, 7}), row = floats({1, 3}, {2, 4, -3});
  const std::pair<const char*, const char*> cases[] = {
      {"Add", "[3, 3]: 14 16 9 -6 -4 -11 9 11 4"},
      {"Sub", "[3, 3]: 10 8 15 -10 -12 -5 5 3 10"},
      {"Mul", "[3, 3]: 24 48 -36 -16 -32 24 14 28 -21"}};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                            DType::kInt32, DType::kInt64}) {
    const Array a = cast_to(column, dtype), b = cast_to(row, dtype);
    const std::string name(dtype_name(dtype));
    for (const auto& [op, expected] : cases) expect_shown({op, {a, b}}, name + expected);
    if (is_floating(dtype)) {
      const Array eighths = cast_to(floats({1, 3}, {2, 4, -8}), dtype);
      expect_shown({"Div", {a, eighths}}, name + "[3, 3]: 6 3 -1.5 -4 -2 1 3.5 1.75 -0.875");
    } else {
      expect_shown({"Div", {a, b}}, name + "[3, 3]: 6 3 -4 -4 -2 2 3 1 -2");
    }
    expect_shown({"Sub", {cast_to(floats({}, {1}), dtype), b}}, name + "[1, 3]: -1 -3 4");
    expect_shown({"Add",
                  {cast_to(floats({2, 1, 2}, {1, 2, 3, 4}), dtype),
                   cast_to(floats({2, 1}, {10, 20}), dtype)}},
                 name + "[2, 2, 2]: 11 12 21 22 13 14 23 24");
    expect_shown({"Mul", {cast_to(floats({0, 3}, {}), dtype), b}}, name + "[0, 3]:");
    expect_shown({"Mul", {cast_to(floats({0, 1}, {}), dtype), b}}, name + "[0, 3]:");
  }
  expect_shown({"Div", {column, row}}, "float32[3, 3]: 6 3 -4 -4 -2 2.667 3.5 1.75 -2.333");
  expect_shown({"Pow", {column, row}},
               "float32[3, 3]: 144 2.074e+04 0.0005787 64 4096 -0.001953 49 2401 0.002915");
}

// ---- Padding -----------------------------------------------------------------------------------

// What is put at one end and taken away at the other leaves nothing to copy.
TEST(OnnxTables, PaddingOfAnEmptyAxisByNothing) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    const Attributes attributes{{"mode", std::string(mode)}};
    for (const auto& [before, after] : {std::pair{0, 0}, {1, -1}, {-2, 2}}) {
      expect_shown({"Pad", {floats({0}, {}), integers({2}, {before, after})}, attributes},
                   "float32[0]:");
      expect_shown({"Pad", {floats({2, 0}, {}), integers({4}, {0, before, 0, after})}, attributes},
                   "float32[2, 0]:");
    }
    expect_shown({"Pad", {floats({2, 0}, {}), integers({4}, {1, 0, 2, 0})}, attributes},
                 "float32[5, 0]:");
    expect_shown({"Pad", {floats({2}, {1, 2}), integers({2}, {-2, 0})}, attributes}, "float32[0]:");
  }
}

// One axis after the other, the elements of which are there by then.
TEST(OnnxTables, PaddingOfTwoAxesInEachMode) {
  const Array x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), pads = integers({4}, {1, 2, 0, 1});
  const std::pair<const char*, const char*> cases[] = {
      {"constant", "0 0 0 0 0 0 0 0 1 2 3 0 0 0 4 5 6 0"},
      {"edge", "1 1 1 2 3 3 1 1 1 2 3 3 4 4 4 5 6 6"},
      {"reflect", "6 5 4 5 6 5 3 2 1 2 3 2 6 5 4 5 6 5"},
      {"wrap", "5 6 4 5 6 4 2 3 1 2 3 1 5 6 4 5 6 4"}};
  for (const auto& [mode, expected] : cases) {
    expect_shown({"Pad", {x, pads}, {{"mode", std::string(mode)}}},
                 "float32[3, 6]: " + std::string(expected));
    // Axes by their numbers, in another order.
    expect_shown({"Pad",
                  {x, integers({4}, {2, 1, 1, 0}), std::nullopt, integers({2}, {-1, 0})},
                  {{"mode", std::string(mode)}}},
                 "float32[3, 6]: " + std::string(expected));
  }
  const auto mode = [](const char* name) { return Attributes{{"mode", std::string(name)}}; };
  const Array line = floats({4}, {1, 2, 3, 4});
  expect_shown({"Pad", {line, integers({2}, {-1, 3})}, mode("edge")}, "float32[6]: 2 3 4 4 4 4");
  expect_shown({"Pad", {line, integers({2}, {-1, 3})}, mode("reflect")}, "float32[6]: 2 3 4 3 2 1");
  expect_shown({"Pad", {line, integers({2}, {5, -2})}, mode("wrap")}, "float32[7]: 4 1 2 3 4 1 2");
  expect_shown({"Pad", {line, integers({2}, {9, -3})}, mode("reflect")},
               "float32[10]: 4 3 2 1 2 3 4 3 2 1");
}

}  // namespace
}  // namespace openrnn
