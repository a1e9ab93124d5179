// Where tensors and variables lie, and how values get from one device to another.
#include <gtest/gtest.h>

#include "openrnn/graph_symbolic.h"
#include "openrnn/ops.h"
#include "support/expect_error.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

const Device& cpu() { return cpu_device(); }

Array numbers(Shape shape, float first = 0.5F) {
  Array values(DType::kFloat32, std::move(shape));
  for (float& x : values.as<float>()) x = first, first += 0.25F;
  return values;
}

std::vector<float> floats(const DeviceArray& array) {
  const Array host = array.to_host();
  const auto values = host.as<float>();
  return {values.begin(), values.end()};
}

/// The default device for the time of a scope.
class Default {
 public:
  explicit Default(const Device& device) : before_(&default_device()) {
    set_default_device(device);
  }
  ~Default() { set_default_device(*before_); }
  Default(const Default&) = delete;
  Default& operator=(const Default&) = delete;

 private:
  const Device* before_;
};

TEST(Place, OnDeviceCopiesBetweenAnyTwo) {
  const Array host = numbers({3, 5});
  const DeviceArray at_cpu = DeviceArray::from_host(cpu(), host.view());
  const DeviceArray first = on_device(at_cpu, test_device(0));
  const DeviceArray second = on_device(first, test_device(1));
  EXPECT_EQ(&second.device(), &test_device(1));
  EXPECT_EQ(second.shape(), (Shape{3, 5}));
  EXPECT_EQ(floats(on_device(second, cpu())), floats(at_cpu));
  EXPECT_EQ(on_device(second, test_device(1)).data(), second.data());
  EXPECT_TRUE(on_device(DeviceArray(), test_device()).empty());
  EXPECT_EQ(on_device(DeviceArray(cpu(), DType::kFloat32, {0, 3}), test_device()).shape(),
            (Shape{0, 3}));
}

TEST(Place, TheDefaultDeviceIsSetByName) {
  const Default there(test_device());
  set_default_device("cpu");
  EXPECT_EQ(&default_device(), &cpu());
  EXPECT_THROW(set_default_device("none"), ArgumentError);
  EXPECT_EQ(&default_device(), &cpu());
}

TEST(Place, HostDataLiesOnTheDefaultDevice) {
  const Default there(test_device());
  const Tensor x(numbers({2, 3}).view());
  EXPECT_EQ(&x.device(), &test_device());
  EXPECT_FALSE(x.placed());
  EXPECT_FALSE(x.detached().placed());
  const std::int32_t three = 3;
  // Integers are looked at by the host.
  EXPECT_EQ(&Tensor(ConstArrayView{&three, DType::kInt32, {}}).device(), &cpu());
  EXPECT_EQ(&Tensor(ConstArrayView{&three, DType::kInt32, {}}, test_device()).device(),
            &test_device());
  const Tensor here(numbers({2, 3}).view(), cpu());
  EXPECT_TRUE(here.placed());
  EXPECT_EQ(&here.device(), &cpu());
}

TEST(Place, ABorrowedArrayGoesToTheDefaultDeviceToo) {
  const Array host = numbers({2, 3});
  const DeviceArray memory = DeviceArray::borrow(cpu(), host.view(), std::make_shared<int>(0));
  {
    const Default here(cpu());
    EXPECT_EQ(Tensor::of_host(memory).value().data(), host.data());
  }
  const Default there(test_device());
  const Tensor x = Tensor::of_host(memory);
  EXPECT_EQ(Tensor::of_host(memory, cpu()).value().data(), host.data());
  EXPECT_FALSE(Tensor::of_host(memory, cpu()).placed());
  EXPECT_FALSE(x.placed());
  EXPECT_EQ(&x.device(), &test_device());
}

// Its owner may change it, and must not see a change of ours: alone or not, it is copied.
TEST(Place, ABorrowedArrayIsNeverWritten) {
  const Array host = numbers({2, 3});
  const std::vector<float> before(host.as<float>().begin(), host.as<float>().end());
  for (const bool shared : {false, true}) {
    DeviceArray array = DeviceArray::borrow(cpu(), host.view(), std::make_shared<int>(0));
    const DeviceArray other = shared ? array : DeviceArray();
    array.make_unique_owner();
    EXPECT_NE(array.data(), host.data());
    EXPECT_FALSE(array.borrowed());
    cpu().fill(DType::kFloat32, 6, 9.0, DType::kFloat32, nullptr, array.mutable_data());
    EXPECT_EQ(std::vector<float>(host.as<float>().begin(), host.as<float>().end()), before);
  }
  const Variable v("borrowed", numbers({2, 3}), true, &cpu());
  v.assign(DeviceArray::borrow(cpu(), host.view(), std::make_shared<int>(0)));
  v.assign_add(host.view());
  EXPECT_EQ(std::vector<float>(host.as<float>().begin(), host.as<float>().end()), before);
  EXPECT_EQ(floats(v.read().value())[1], 2 * before[1]);
}

TEST(Place, ToIsDifferentiable) {
  const Tensor x(numbers({2, 3}).view(), cpu());
  GradientTape tape;
  const Tensor watched = tape.watch(x);
  const Tensor there = watched.to(test_device());
  EXPECT_EQ(&there.device(), &test_device());
  EXPECT_TRUE(there.tracked());
  const Tensor back = ops::square(there).to(test_device(1));
  const Tensor loss = ops::reduce_sum(back);
  EXPECT_EQ(&loss.device(), &test_device(1));
  const DeviceArray gradient = tape.gradient(loss, std::vector{watched})[0];
  EXPECT_EQ(&gradient.device(), &cpu());
  EXPECT_EQ(floats(gradient), (std::vector<float>{1.0F, 1.5F, 2.0F, 2.5F, 3.0F, 3.5F}));
}

TEST(Place, ToIsDifferentiableTwice) {
  const GradientTape outer;
  const Tensor x = outer.watch(Tensor(numbers({2, 3}).view(), cpu()));
  const GradientTape inner;
  const Tensor loss = ops::reduce_sum(ops::square(x.to(test_device())));
  const Tensor gradient = inner.gradients({loss}, std::vector{x})[0];
  EXPECT_EQ(&gradient.device(), &cpu());
  const DeviceArray second = outer.gradient(ops::reduce_sum(gradient), std::vector{x})[0];
  EXPECT_EQ(&second.device(), &cpu());
  EXPECT_EQ(floats(second), std::vector<float>(6, 2.0F));
}

TEST(Place, ToTheSameDeviceCopiesNothing) {
  const Tensor x(numbers({4}).view(), test_device());
  EXPECT_EQ(x.to(test_device()).value().data(), x.value().data());
  const Default there(test_device());
  const Tensor free(numbers({4}).view());
  EXPECT_TRUE(free.to(test_device()).placed());
}

TEST(Place, ToOfASymbolicTensorIsRecorded) {
  const Tensor x = Input({-1, 3});
  const Tensor moved = x.to(test_device());
  EXPECT_TRUE(moved.is_symbolic());
  EXPECT_EQ(moved.shape(), (Shape{-1, 3}));
  const Attributes attributes = moved.symbol()->call->attributes.value();
  EXPECT_EQ(std::get<std::string>(attributes.at(0)), test_device().name());
  SymbolicValues values;
  values.set(x, Tensor(numbers({2, 3}).view(), cpu()));
  EXPECT_EQ(&values.get(moved).device(), &test_device());
}

TEST(Place, NothingHasNoDevice) {
  expect_error<ArgumentError>([] { (void)Tensor().device(); },
                              "[device] the tensor is empty, expected one with a value");
  expect_error<ArgumentError>([] { (void)Tensor().to(cpu()); },
                              "[to] the tensor is empty, expected one with a value");
  EXPECT_THROW((void)Input({2}).device(), StateError);
}

TEST(Place, AnOutputGradientGoesToItsTarget) {
  const Tensor x(numbers({2}).view(), test_device());
  GradientTape tape;
  const Tensor watched = tape.watch(x);
  const Tensor y = ops::scale(watched, 2.0);
  const DeviceArray start = DeviceArray::from_host(cpu(), numbers({2}).view());
  const DeviceArray gradient = tape.gradient(y, std::vector{watched}, start)[0];
  EXPECT_EQ(floats(gradient), (std::vector<float>{1.0F, 1.5F}));
}

TEST(Variables, LieWhereTheyAreMade) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Default here(cpu());
  const Variable there("there", numbers({2, 3}), true, &test_device());
  const Variable plain("plain", numbers({2, 3}));
  EXPECT_EQ(&there.device(), &test_device());
  EXPECT_EQ(&plain.device(), &cpu());
  set_default_device(test_device());
  EXPECT_EQ(&plain.device(), &cpu());
  const Variable by_default("by_default", numbers({1}));
  EXPECT_EQ(&by_default.device(), &test_device());
}

TEST(Variables, TakeValuesOfAnyDevice) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable there("there", numbers({3}), true, &test_device());
  there.assign(numbers({3}, 7.0F).view());
  EXPECT_EQ(floats(there.read().value()), (std::vector<float>{7.0F, 7.25F, 7.5F}));
  there.assign(DeviceArray::from_host(cpu(), numbers({3}, 9.0F).view()));
  EXPECT_EQ(&there.read().device(), &test_device());
  there.assign(DeviceArray::from_host(test_device(1), numbers({3}, 11.0F).view()));
  EXPECT_EQ(&there.read().device(), &test_device());
  EXPECT_EQ(floats(there.read().value()), (std::vector<float>{11.0F, 11.25F, 11.5F}));
  EXPECT_EQ(there.version(), 4u);
}

/// Memory of a producer, and what it does when it is told that nobody reads any more.
DeviceArray lent(
    const Device& device, const ConstArrayView& memory, std::function<void()> returned = [] {}) {
  const std::shared_ptr<void> owner(nullptr, [returned](void*) { returned(); });
  return DeviceArray::borrow(device, memory, owner);
}

TEST(Variables, CopyWhatTheyBorrow) {
  Graph graph;
  const Graph::AsDefault current(graph);
  for (const Device* device : {&cpu(), &test_device()}) {
    SCOPED_TRACE(device->name());
    DeviceArray produced = DeviceArray::from_host(*device, numbers({3}).view());
    const Variable v(std::string(device->name() == "cpu" ? "here" : "there"), numbers({3}, 9.0F),
                     true, device);
    v.assign(lent(*device, {produced.data(), produced.dtype(), produced.shape()}).reshaped({3}));
    EXPECT_NE(v.read().value().data(), produced.data());
    v.update([&](void* elements) {
      device->fill(DType::kFloat32, 3, 42, DType::kFloat32, nullptr, elements);
    });
    EXPECT_EQ(floats(v.read().value()), (std::vector<float>{42, 42, 42}));
    EXPECT_EQ(floats(produced), (std::vector<float>{0.5F, 0.75F, 1.0F}));
    produced.device().zero(produced.mutable_data(), produced.size_bytes());
    EXPECT_EQ(floats(v.read().value()), (std::vector<float>{42, 42, 42}));
  }
}

TEST(Variables, HoldNoLockWhileABorrowedArrayGoesBack) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable v("v", numbers({3}), true, &cpu());
  const Array host = numbers({3}, 2.0F);
  std::uint64_t seen = 0;
  v.assign(lent(cpu(), host.view(), [&] { seen = v.version(); }));
  v.assign(numbers({3}, 3.0F).view());
  EXPECT_GT(seen, 0u);
}

TEST(Place, BorrowedMemoryIsNeverItsOwnersAlone) {
  const Array host = numbers({2, 3});
  for (DeviceArray array : {lent(cpu(), host.view()), lent(cpu(), host.view()).reshaped({6})}) {
    array.make_unique_owner();
    EXPECT_NE(array.data(), host.data());
    EXPECT_FALSE(array.borrowed());
    const void* const own = array.data();
    array.make_unique_owner();
    EXPECT_EQ(array.data(), own);
  }
}

TEST(Variables, AreFoundAgainOnTheirDeviceOnly) {
  Graph graph;
  const Graph::AsDefault current(graph);
  VariableOptions options;
  options.device = &test_device();
  Variable held;
  {
    const VariableScope scope("a");
    held = get_variable("w", {2}, options);
  }
  const VariableScope scope("a", true);
  EXPECT_EQ(&get_variable("w", {2}, options).device(), &test_device());
  EXPECT_EQ(&get_variable("w", {2}).device(), &test_device());
  options.device = &cpu();
  expect_error<ArgumentError>([&] { get_variable("w", {2}, options); },
                              "[get_variable] 'a/w' is asked for on cpu, expected test:0, where it "
                              "exists");
}

// What to() has put where it lay already is placed there, as anywhere else.
TEST(Place, ToItsOwnDevicePlacesATensor) {
  const Tensor host(numbers({3}).view());
  EXPECT_FALSE(host.placed());
  const Tensor placed = host.to(host.device());
  EXPECT_TRUE(placed.placed());
  EXPECT_EQ(placed.value().data(), host.value().data());
  EXPECT_TRUE(placed.detached().placed());
  EXPECT_FALSE(host.detached().placed());
  const Device& other = test_device(&host.device() == &test_device(0) ? 1 : 0);
  EXPECT_NO_THROW(ops::add(host, host.to(other)));
  EXPECT_THROW(ops::add(placed, host.to(other)), ArgumentError);
}

}  // namespace
}  // namespace openrnn::testing
