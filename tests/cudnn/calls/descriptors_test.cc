// What cuDNN is told of a network and a batch, and that all of it is given back.
#include <algorithm>
#include <tuple>

#include "conformance/support/bounds.h"
#include "cudnn/calls/instead.h"
#include "cudnn/graphs/device_calls.h"
#include "cudnn/rnn/piece.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

using cudnn::CudnnApi;
using openrnn::testing::Balance;
using openrnn::testing::Instead;
using openrnn::testing::Setting;

cudnn::Context& context() { return cudnn::Context::of(0); }

/// The numbers of cudnnSetRNNDescriptor_v8, in its order, without those of objects.
std::string told(const std::string& text, const cudnn::Variant& variant = {}) {
  std::string numbers;
  const Instead<&CudnnApi::set_rnn> listens(
      [&](auto own, auto rnn, auto algo, auto cell, auto bias, auto direction, auto input,
          auto type, auto precision, auto math, auto width, auto hidden, auto projection,
          auto layers, auto dropout, auto flags) {
        for (const long each : {long(algo), long(cell), long(bias), long(direction), long(input),
                                long(type), long(precision), long(math), long(width), long(hidden),
                                long(projection), long(layers), long(flags)}) {
          numbers += std::to_string(each) + " ";
        }
        return own(rnn, algo, cell, bias, direction, input, type, precision, math, width, hidden,
                   projection, layers, dropout, flags);
      });
  const cudnn::Context::Current current(context());
  const cudnn::BorrowedHandle handle(context());
  const cudnn::RnnDescriptor made(context(), handle.get(), parse_case(text, "told").spec, variant,
                                  {});
  return numbers;
}

// Algorithm, cell (relu 0, tanh 1, lstm 2, gru 3), double bias 2, direction, input (linear 0, skip
// 1), type (float 0, double 1, half 2), that of sums, math, widths, layers, padding.
TEST(CudnnDescriptors, OfANetworkHaveEachOfItsNumbers) {
  const std::pair<const char*, const char*> expected[] = {
      {"lstm L3 U7 I5 B2 T3 f32", "0 2 2 0 0 0 0 3 5 7 7 3 0 "},
      {"gru L2 U7 I5 B2 T3 f32", "0 3 2 0 0 0 0 3 5 7 7 2 0 "},
      {"rnn_tanh L1 U7 I5 B2 T3 f32", "0 1 2 0 0 0 0 3 5 7 7 1 0 "},
      {"rnn_relu L1 U7 I5 B2 T3 f32", "0 0 2 0 0 0 0 3 5 7 7 1 0 "},
      {"lstm L3 U7 I5 B2 T3 bi f32", "0 2 2 1 0 0 0 3 5 7 7 3 0 "},
      {"lstm L3 U7 I5 B2 T3 P4 bi f64", "0 2 2 1 0 1 1 0 5 7 4 3 0 "},
      {"lstm L3 U7 I5 B2 T3 P4 f16", "0 2 2 0 0 2 0 1 5 7 4 3 0 "},
      {"gru L2 U7 I7 B2 T3 skip f32", "0 3 2 0 1 0 0 3 7 7 7 2 0 "},
      {"gru L2 U7 I7 B2 T3 f32", "0 3 2 0 0 0 0 3 7 7 7 2 0 "},
      {"gru L2 U7 I7 B2 T3 auto f32", "0 3 2 0 1 0 0 3 7 7 7 2 0 "},
      {"gru L2 U7 I5 B2 T3 auto f32", "0 3 2 0 0 0 0 3 5 7 7 2 0 "},
      {"lstm L1 U7 I5 B2 T3 f32 tf32", "0 2 2 0 0 0 0 0 5 7 7 1 0 "},
      {"lstm L1 U7 I5 B2 T3 f32 fp16", "0 2 2 0 0 0 0 2 5 7 7 1 0 "}};
  for (const auto& [text, numbers] : expected) EXPECT_EQ(told(text), numbers) << text;
  const std::string text = "lstm L1 U7 I5 B2 T3 f32", rest = " 2 2 0 0 0 0 3 5 7 7 1 ";
  EXPECT_EQ(told(text, {CUDNN_RNN_ALGO_STANDARD, true}), "0" + rest + "1 ");
  EXPECT_EQ(told(text, {CUDNN_RNN_ALGO_PERSIST_STATIC, false}), "1" + rest + "0 ");
  EXPECT_EQ(told(text, {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, true}), "3" + rest + "1 ");
}

TEST(CudnnDescriptors, OfABatchHaveItsLengthsAndLayout) {
  std::string numbers;
  const Instead<&CudnnApi::set_data> listens([&](auto own, auto data, auto type, auto layout,
                                                 auto time, auto batch, auto width,
                                                 const int* lengths, auto fill) {
    for (const long each : {long(type), long(layout), long(time), long(batch), long(width)}) {
      numbers += std::to_string(each) + " ";
    }
    for (int b = 0; b < batch; ++b) numbers += "," + std::to_string(lengths[b]);
    return own(data, type, layout, time, batch, width, lengths, fill);
  });
  const std::vector<int> lengths = {5, 3, 2};
  const auto of = [&](DType dtype, const cudnn::Variant& variant) {
    numbers.clear();
    cudnn::data_descriptor(dtype, variant, lengths, 7);
    return numbers;
  };
  EXPECT_EQ(of(DType::kFloat32, {}), "0 1 5 3 7 ,5,3,2");
  EXPECT_EQ(of(DType::kFloat64, {}), "1 1 5 3 7 ,5,3,2");
  EXPECT_EQ(of(DType::kFloat16, {CUDNN_RNN_ALGO_STANDARD, true}), "2 0 5 3 7 ,5,3,2");
}

TEST(CudnnDescriptors, OfStatesAreDense) {
  std::string numbers;
  const Instead<&CudnnApi::set_tensor> listens(
      [&](auto own, auto tensor, auto type, int count, const int* dims, const int* strides) {
        numbers += std::to_string(type);
        for (int n = 0; n < count; ++n) {
          numbers += " " + std::to_string(dims[n]) + "/" + std::to_string(strides[n]);
        }
        return own(tensor, type, count, dims, strides);
      });
  cudnn::state_descriptor(DType::kFloat32, 6, 5, 4);
  EXPECT_EQ(numbers, "0 6/20 5/4 4/1");
}

struct Descriptors {
  Balance<&CudnnApi::create_tensor, &CudnnApi::destroy_tensor> tensors;
  Balance<&CudnnApi::create_dropout, &CudnnApi::destroy_dropout> dropouts;
  Balance<&CudnnApi::create_data, &CudnnApi::destroy_data> data;
  Balance<&CudnnApi::create_rnn, &CudnnApi::destroy_rnn> networks;
  int alive() const { return tensors.alive + dropouts.alive + data.alive + networks.alive; }
  void expect_none() const {
    const auto expect = [](const auto& kind) {
      EXPECT_GT(kind.made, 0);
      EXPECT_EQ(kind.alive, 0);
    };
    expect(tensors);
    expect(dropouts);
    expect(data);
    expect(networks);
  }
};

TEST(CudnnDescriptors, AreGivenBackAfterEveryCall) {
  const Setting choice("OPENRNN_CUDNN_ALGORITHM", "auto");
  for (const char* text : {"lstm L2 U13 I5 B3 T4 bi f32 lengths", "gru L2 U13 I5 B3 T4 f32"}) {
    const Case c = parse_case(text, "balance");
    const Data d = make_data(c);
    const Descriptors all;
    run_inference(engine("cudnn"), c, d);
    EXPECT_EQ(all.alive(), 0) << text;
    run_training(engine("cudnn"), c, d);
    all.expect_none();
  }
}

// At each function that may refuse: nothing of the call stays, and the next call is right.
template <auto Which>
void expect_nothing_left(const std::string& name) {
  const Case c = parse_case("lstm L2 U12 I5 B3 T4 bi f32 lengths", "refused");
  const Data d = make_data(c);
  const Result expected = run_training(engine("cudnn"), c, d);
  std::vector<std::size_t> used;
  for (int n = 0; n < 8; ++n) {
    const Descriptors all;
    const Instead<Which> refuses([](auto, auto...) { return CUDNN_STATUS_BAD_PARAM; });
    const std::string error = error_of<EngineError>([&] { run_training(engine("cudnn"), c, d); });
    EXPECT_TRUE(error.starts_with("[" + name + "] cuDNN answered CUDNN_STATUS_BAD_PARAM")) << error;
    EXPECT_EQ(all.alive(), 0) << name;
    used.push_back(context().pool().used_bytes());
  }
  // The first ones still fill the list of blocks for uploads.
  EXPECT_EQ(used.back(), used[4]) << name;
  EXPECT_EQ(first_difference(expected, run_training(engine("cudnn"), c, d)), "") << name;
}

TEST(CudnnDescriptors, AndItsMemoryAreGivenBackAfterEachRefusal) {
  expect_nothing_left<&CudnnApi::set_tensor>("cudnnSetTensorNdDescriptor");
  expect_nothing_left<&CudnnApi::set_data>("cudnnSetRNNDataDescriptor");
  expect_nothing_left<&CudnnApi::set_dropout>("cudnnSetDropoutDescriptor");
  expect_nothing_left<&CudnnApi::set_rnn>("cudnnSetRNNDescriptor_v8");
  expect_nothing_left<&CudnnApi::temp_space_sizes>("cudnnGetRNNTempSpaceSizes");
  expect_nothing_left<&CudnnApi::forward>("cudnnRNNForward");
  expect_nothing_left<&CudnnApi::backward_data>("cudnnRNNBackwardData_v8");
  expect_nothing_left<&CudnnApi::backward_weights>("cudnnRNNBackwardWeights_v8");
}

// A handle without a stream would work on another one: it is not kept.
TEST(CudnnDescriptors, AHandleThatTakesNoStreamIsDestroyed) {
  const cudnn::Context::Current current(context());
  cudnnHandle_t last = nullptr;
  std::vector<cudnnHandle_t> made, destroyed;
  const Instead<&CudnnApi::create> creates([&](auto own, auto handle) {
    const auto answer = own(handle);
    made.push_back(*handle);
    return answer;
  });
  const Instead<&CudnnApi::destroy> destroys([&](auto own, auto handle) {
    destroyed.push_back(handle);
    return own(handle);
  });
  std::vector<std::unique_ptr<cudnn::BorrowedHandle>> held;
  while (made.empty()) held.push_back(std::make_unique<cudnn::BorrowedHandle>(context()));
  made.clear();
  {
    const Instead<&CudnnApi::set_stream> refuses([&](auto, auto handle, auto) {
      last = handle;
      return CUDNN_STATUS_BAD_PARAM;
    });
    EXPECT_TRUE(error_of<EngineError>([] {
                  const cudnn::BorrowedHandle none(context());
                }).starts_with("[cudnnSetStream]"));
  }
  EXPECT_EQ(made, std::vector{last});
  EXPECT_EQ(destroyed, std::vector{last});
  held.clear();
  const cudnn::BorrowedHandle again(context());
  EXPECT_EQ(made.size(), 1U) << "those that were given back are taken again";
}

/// Answers with more than cuDNN asks for, and writes all of it wherever the library gives it.
struct Spaces {
  std::size_t work = 0, reserve = 0;
  std::string wrong;

  /// The call with cuDNN's own sizes, whose last four arguments are of the two spaces.
  template <class Own, class... Arguments>
  cudnnStatus_t check(Own own, bool fills, Arguments... arguments) {
    constexpr std::size_t kLast = sizeof...(Arguments);
    std::tuple<Arguments...> all{arguments...};
    auto& work_bytes = std::get<kLast - 4>(all);
    auto& reserve_bytes = std::get<kLast - 2>(all);
    shrink(work_bytes, work, std::get<kLast - 3>(all), fills);
    if (reserve_bytes > 0) shrink(reserve_bytes, reserve, std::get<kLast - 1>(all), fills);
    return std::apply(own, all);
  }
  // What the forward call saves is not to be lost.
  void shrink(std::size_t& bytes, std::size_t more, void* memory, bool fills) {
    if (bytes < more) wrong += std::to_string(bytes) + " of " + std::to_string(more) + "; ";
    bytes -= std::min(more, bytes);
    context().zero(static_cast<char*>(memory) + bytes, more);
    if (fills) context().zero(memory, bytes);
  }

  Instead<&CudnnApi::temp_space_sizes> sizes{
      [this](auto own, auto handle, auto rnn, auto mode, auto x, auto* of_work, auto* of_reserve) {
        const auto answer = own(handle, rnn, mode, x, of_work, of_reserve);
        *of_work += work;
        *of_reserve += reserve;
        return answer;
      }};
  Instead<&CudnnApi::forward> forwards{
      [this](auto own, auto... all) { return check(own, true, all...); }};
  Instead<&CudnnApi::backward_data> gradients{
      [this](auto own, auto... all) { return check(own, false, all...); }};
  Instead<&CudnnApi::backward_weights> weights{
      [this](auto own, auto... all) { return check(own, false, all...); }};
};

TEST(CudnnSpaces, AreAsLargeAsCudnnHasSaid) {
  const Case c = parse_case("lstm L2 U11 I5 B3 T4 bi f32 lengths", "spaces");
  const Data d = make_data(c);
  const Result expected = run_training(engine("cudnn"), c, d);
  for (const auto& [work, reserve] : {std::pair{10, 3000000}, {3000000, 10}, {0, 100000}}) {
    Spaces spaces;
    spaces.work = static_cast<std::size_t>(work);
    spaces.reserve = static_cast<std::size_t>(reserve);
    EXPECT_EQ(first_difference(expected, run_training(engine("cudnn"), c, d)), "");
    run_inference(engine("cudnn"), c, d);
    EXPECT_EQ(spaces.wrong, "") << work << " " << reserve;
  }
}

}  // namespace
}  // namespace openrnn::conformance
