// Layers that consist of layers: what checkpoints store of them, and restores before a build.
#include "checkpoint/networks.h"
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "openrnn/train_optimizer.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using namespace testing;
using formats::TempFolder;
using layers::Dense;
using testing::thrown;

// Two blocks in a list, a head, and a variable of its own.
class Net : public Layer {
 public:
  explicit Net(int blocks = 2) : Layer("", "net", DType::kFloat32), head_({.units = 1}) {
    for (int i = 0; i < blocks; ++i) {
      blocks_.push_back(std::make_shared<Dense>(layers::DenseOptions{.units = 3}));
    }
    track("blocks", blocks_);
    track("head", head_);
  }
  Tensor operator()(const Tensor& x) {
    ensure_built(x.shape());
    Tensor y = ops::multiply(x, scale_.read());
    for (const auto& block : blocks_) y = (*block)(y);
    return head_(y);
  }
  Dense& head() { return head_; }
  std::vector<std::shared_ptr<Dense>> blocks_;

 protected:
  void do_build(const Shape& shape) override { scale_ = add_weight("scale", shape, {}); }

 private:
  Dense head_;
  Variable scale_;
};

struct ObjectParts : ::testing::Test {
  Graph graph;
  Graph::AsDefault current{graph};
  TempFolder folder;
  const Tensor x{varied(DType::kFloat32, {2, 3}, 1).view()};
};

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  const Array array = tensor.to_host();
  for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(element(array.view(), i));
  return values;
}

TEST_F(ObjectParts, PartsAreStoredUnderTheirNames) {
  Net net;
  net(x);
  EXPECT_EQ(net.weights().size(), 7u);
  EXPECT_EQ(net.count_params(), 6 + 2 * 12 + 4);
  const TensorBundleReader reader(Checkpoint({{"net", net}}).write(folder / "ck"));
  for (const char* name : {"scale", "blocks/0/kernel", "blocks/1/bias", "head/kernel"}) {
    EXPECT_TRUE(reader.contains(std::string("net/") + name + "/.ATTRIBUTES/VARIABLE_VALUE"));
  }
}

TEST_F(ObjectParts, ARestoreBeforeTheBuildIsDoneByIt) {
  Net net;
  const std::vector<double> wanted = values_of(net(x));
  const std::string prefix = Checkpoint({{"net", net}}).write(folder / "ck");
  Net made;
  Checkpoint checkpoint({{"net", made}});
  const CheckpointStatus status = checkpoint.restore(prefix);
  EXPECT_TRUE(status.restored.empty());
  EXPECT_NE(thrown<ArgumentError>([&] { status.assert_consumed(); }), "");
  EXPECT_EQ(values_of(made(x)), wanted);
  status.assert_consumed().assert_existing_objects_matched();
  // What was restored once is not restored again.
  made.head().bias().assign(Array(DType::kFloat32, {1}).view());
  made.track("more", std::make_shared<Dense>(layers::DenseOptions{.units = 1}));
  (void)status.current();
  EXPECT_EQ(element(made.head().bias().to_host().view(), 0), 0.0);
}

TEST_F(ObjectParts, SlotsOfWhatIsBuiltLaterAreRestoredToo) {
  Dense dense({.units = 2});
  train::AdamOptimizer adam(0.1);
  GradientTape tape;
  const Tensor loss = ops::reduce_sum(ops::square(dense(x)));
  tape.close();
  adam.minimize(tape, loss, dense.weights());
  Checkpoint checkpoint({{"dense", dense}, {"opt", adam.trackable()}});
  const std::string prefix = checkpoint.write(folder / "ck");
  Dense made({.units = 2});
  train::AdamOptimizer fresh(0.1);
  Checkpoint later({{"dense", made}, {"opt", fresh.trackable()}});
  const CheckpointStatus status = later.restore(prefix);
  made.build({-1, 3});
  status.assert_consumed();
  EXPECT_EQ(values_of(fresh.slots(made.kernel())[0].read()),
            values_of(adam.slots(dense.kernel())[0].read()));
  // Not in the scope of the layer whose build made them.
  EXPECT_EQ(fresh.slots(made.kernel())[0].name(), made.kernel().name() + "/Adam");
}

// Its variables are parts under the names of each other.
class Crossed : public Layer {
 public:
  Crossed() : Layer("", "crossed", DType::kFloat32) {}
  Variable a, b;

 protected:
  void do_build(const Shape& shape) override {
    a = add_weight("a", shape, {});
    b = add_weight("b", shape, {});
    track("a", b);
    track("b", a);
  }
};

TEST_F(ObjectParts, APartsNameGoesBeforeThatOfAVariable) {
  Crossed layer;
  layer.build({3});
  const TensorBundleReader reader(Checkpoint({{"net", layer}}).write(folder / "ck"));
  const std::string end = "/.ATTRIBUTES/VARIABLE_VALUE";
  EXPECT_TRUE(same_bits(reader.read("net/a" + end), layer.b.to_host()));
  EXPECT_TRUE(same_bits(reader.read("net/b" + end), layer.a.to_host()));
  EXPECT_EQ(reader.tensors().size(), 3u);
}

TEST_F(ObjectParts, AWrongShapeFailsTheBuild) {
  Dense dense({.units = 2});
  dense.build({-1, 3});
  const std::string prefix = Checkpoint({{"dense", dense}}).write(folder / "ck");
  Dense made({.units = 4});
  Checkpoint({{"dense", made}}).read(prefix);
  EXPECT_NE(thrown<ArgumentError>([&] { made.build({-1, 3}); }), "");
  EXPECT_FALSE(made.built());
  EXPECT_EQ(graph.variables().size(), 2u);
}

TEST_F(ObjectParts, WhatTheProgramHasAndTheFileLacksIsMissing) {
  Net net;
  net(x);
  const std::string prefix = Checkpoint({{"net", net}}).write(folder / "ck");
  Net longer(3);
  longer(x);
  const CheckpointStatus status = Checkpoint({{"net", longer}}).read(prefix);
  EXPECT_EQ(status.missing, (std::vector<std::string>{"net/blocks/2/kernel", "net/blocks/2/bias"}));
  EXPECT_NE(thrown<ArgumentError>([&] { status.assert_existing_objects_matched(); }), "");
  Net unbuilt;
  unbuilt.track("extra", std::make_shared<Dense>(layers::DenseOptions{.units = 3}));
  const CheckpointStatus objects = Checkpoint({{"net", unbuilt}}).read(prefix);
  EXPECT_EQ(objects.missing, std::vector<std::string>{"net/extra"});
  Net shorter(1);
  shorter(x);
  const CheckpointStatus left = Checkpoint({{"net", shorter}}).read(prefix);
  left.assert_existing_objects_matched();
  EXPECT_NE(thrown<ArgumentError>([&] { left.assert_consumed(); }), "");
}

}  // namespace
}  // namespace openrnn
