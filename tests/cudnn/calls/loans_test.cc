// Parameters that a call reads where they lie, and who writes there meanwhile.
#include <gtest/gtest.h>

#include "conformance/support/bounds.h"
#include "cudnn/rnn/weights.h"
#include "openrnn/ops.h"
#include "support/expect_error.h"
#include "support/setting.h"

namespace openrnn::conformance {
namespace {

using openrnn::testing::Setting;

const Device& gpu() { return gpu_device(0); }

bool same_bits(const Array& a, const Array& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// A network whose parameters are a variable of the GPU, in a graph of its own.
struct Network {
  explicit Network(const std::string& text)
      : c(parse_case(text, "loans")), d(make_data(c)), current(graph) {
    weights = Variable("weights", cast(d.params.view(), c.spec.dtype), true, &gpu());
    inputs.x = Tensor(reshaped(d.x, {c.time, c.batch, c.spec.input_size}), gpu());
    inputs.dropout = {.seed = 5, .call = 2};
  }
  static ConstArrayView reshaped(const Array& array, Shape shape) {
    return {array.data(), array.dtype(), std::move(shape)};
  }

  Tensor loss(const Tensor& params) {
    inputs.params = params;
    const Tensor sum = ops::reduce_sum(ops::rnn(c.spec, inputs, &cache).output);
    inputs.params = {};
    return sum;
  }
  /// The gradient of a call; `before_backward` runs between the two.
  template <class F>
  Array gradient(const F& before_backward) {
    const GradientTape tape;
    const Tensor y = loss(weights.read());
    before_backward();
    return tape.gradient(y, std::vector{weights})[0].to_host();
  }
  const void* address() const { return weights.read().value().data(); }
  void write(double value) const {
    weights.update([&](void* elements) {
      gpu().fill(c.spec.dtype, shape_size(weights.shape()), value, c.spec.dtype, nullptr, elements);
    });
  }

  Case c;
  Data d;
  Graph graph;
  Graph::AsDefault current;
  Variable weights;
  ops::RnnInputs inputs;
  ops::PackedCache cache;
};

constexpr const char* kNetworks[] = {"lstm L2 U7 I3 B5 T4 bi f32", "gru L3 U8 I4 B2 T3 f64 D0.5",
                                     "lstm L2 U9 I3 B3 T4 P5 f16 D0.5"};

const void* weights_read(const std::shared_ptr<const PackedParams>& packed) {
  const auto& mine = dynamic_cast<const cudnn::CudnnPacked&>(*packed);
  const cudnn::Context::Current current(mine.context());
  return mine.part(mine.whole()).memory.get();
}

TEST(CudnnLoans, AWholeNetworkReadsTheVariableItself) {
  Network network("lstm L2 U7 I3 B5 T4 bi f32");
  const void* const address = network.address();
  for (const PackFor purpose : {PackFor::kInference, PackFor::kTraining}) {
    for (int round = 0; round < 2; ++round) {
      const auto packed =
          network.cache.get(*gpu().engine(), network.c.spec, network.weights.read(), purpose);
      EXPECT_EQ(weights_read(packed), address);
    }
  }
  EXPECT_EQ(network.cache.packings(), 2u) << "what is kept is lent to again";
  const double before = network.loss(network.weights.read()).item();
  network.write(0.25);
  EXPECT_EQ(network.address(), address) << "nobody held what the update wrote";
  EXPECT_NE(network.loss(network.weights.read()).item(), before);
}

TEST(CudnnLoans, AnUpdateLeavesASavedCallWhatItRead) {
  for (const char* text : kNetworks) {
    Network network(text);
    const Array expected = network.gradient([] {});
    const void* const address = network.address();
    const Array found = network.gradient([&] { network.write(0.75); });
    EXPECT_NE(network.address(), address) << text << ": the saved call still has the old memory";
    EXPECT_TRUE(same_bits(expected, found)) << text;
    EXPECT_FALSE(same_bits(expected, network.gradient([] {}))) << text << ": of the new values";
  }
}

TEST(CudnnLoans, ASecondBackwardRepeatsTheForwardCallOfTheOldValues) {
  for (const char* text : kNetworks) {
    Network network(text);
    const GradientTape tape;
    const Tensor y = network.loss(network.weights.read());
    const Array first = tape.gradient(y, std::vector{network.weights})[0].to_host();
    network.write(0.75);
    const Array second = tape.gradient(y, std::vector{network.weights})[0].to_host();
    EXPECT_TRUE(same_bits(first, second)) << text;
  }
}

TEST(CudnnLoans, AnAssignedValueReachesNoSavedCallEither) {
  Network network(kNetworks[0]);
  const Array expected = network.gradient([] {});
  const Array other(network.c.spec.dtype, network.weights.shape());
  const Array found = network.gradient([&] { network.weights.assign(other.view()); });
  EXPECT_TRUE(same_bits(expected, found));
}

TEST(CudnnLoans, PartsAreCopiedOnceAVersion) {
  const Setting standard("OPENRNN_CUDNN_ALGORITHM", "standard");
  Network network("gru L3 U8 I4 B2 T3 f32 D0.5");
  const auto part = [&] {
    const auto packed = network.cache.get(*gpu().engine(), network.c.spec, network.weights.read(),
                                          PackFor::kTraining);
    const auto& mine = dynamic_cast<const cudnn::CudnnPacked&>(*packed);
    const cudnn::Context::Current current(mine.context());
    return mine.part({1, 1, -1}).memory;
  };
  const auto first = part();
  EXPECT_EQ(part(), first);
  EXPECT_NE(first.get(), network.address());
  network.write(0.5);
  EXPECT_NE(part(), first);
}

TEST(CudnnLoans, WhatIsKeptHasNoParameters) {
  const Network network("gru L1 U8 I4 B2 T3 f32");
  const Tensor params = network.weights.read();
  const ConstArrayView view{params.value().data(), params.dtype(), params.shape()};
  const auto packed =
      gpu().engine()->pack(network.c.spec, view, {PackFor::kInference, 0, params.value().share()});
  const auto kept = packed->over(nullptr);
  ASSERT_NE(kept, nullptr);
  expect_error<StateError>(
      [&] { weights_read(kept); },
      "[forward] params are without the memory that was lent to them, expected some");
  EXPECT_EQ(weights_read(kept->over(params.value().share())), view.data);
}

TEST(CudnnLoans, ABareBufferIsCopiedAndAnOddAddressToo) {
  const Case c = parse_case("lstm L1 U5 I3 B3 T4 f32", "odd");
  const Data d = make_data(c);
  DeviceArray all(gpu(), DType::kFloat32, {d.params.view().size() + 1});
  char* const odd = static_cast<char*>(all.mutable_data()) + 4;
  gpu().upload(odd, d.params.data(), d.params.size_bytes());
  const ConstArrayView view{odd, DType::kFloat32, d.params.view().shape};
  const std::shared_ptr<const void> lender(all.share(), odd);
  for (const auto& lent : {lender, std::shared_ptr<const void>()}) {
    const auto packed = gpu().engine()->pack(c.spec, view, {PackFor::kInference, 0, lent});
    EXPECT_EQ(packed->over(nullptr), nullptr) << "a copy needs no lender";
    const void* const address = weights_read(packed);
    EXPECT_NE(address, odd);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 16, 0u);
  }
}

TEST(CudnnLoans, WhatAnotherLibraryOwnsIsReadInPlaceOnlyWithoutSaving) {
  Network network("lstm L2 U7 I3 B5 T4 f32");
  DeviceArray theirs = DeviceArray::from_host(gpu(), network.d.params.view());
  const auto borrowed = Tensor(DeviceArray::borrow(
      gpu(), {theirs.data(), theirs.dtype(), theirs.shape()}, std::shared_ptr<void>()));
  const auto address_for = [&](const Tensor& params, PackFor purpose) {
    return weights_read(network.cache.get(*gpu().engine(), network.c.spec, params, purpose));
  };
  EXPECT_EQ(address_for(borrowed, PackFor::kInference), theirs.data());
  EXPECT_NE(address_for(borrowed, PackFor::kTraining), theirs.data());
  const GradientTape tape;
  const Tensor watched = tape.watch(borrowed);
  EXPECT_NE(address_for(watched, PackFor::kInference), theirs.data()) << "it is kept";
  const Tensor y = network.loss(watched);
  const Array before = tape.gradient(y, std::vector{watched})[0].to_host();
  gpu().zero(theirs.mutable_data(), theirs.size_bytes());
  const Array after = tape.gradient(y, std::vector{watched})[0].to_host();
  EXPECT_TRUE(same_bits(before, after));
}

}  // namespace
}  // namespace openrnn::conformance
