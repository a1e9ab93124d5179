// Who keeps a layer alive: its tensors do, its own nodes and losses do not.
#include <memory>

#include "openrnn/layers.h"
#include "openrnn/ops.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using layers::CudnnLSTM;
using layers::CudnnRnnOptions;

class LayerOwnership : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault current_{graph_};
  Tensor source_ = Input({-1, 2, 4});
};

TEST_F(LayerOwnership, TensorsKeepTheirLayer) {
  auto layer =
      std::make_shared<CudnnLSTM>(CudnnRnnOptions{.network = {.num_layers = 1, .num_units = 4}});
  const std::weak_ptr<CudnnLSTM> kept = layer;
  Tensor output = (*layer)(source_).output;
  layer.reset();
  EXPECT_FALSE(kept.expired());
  output = Tensor();
  EXPECT_TRUE(kept.expired());
}

TEST_F(LayerOwnership, ALayerThatTakesItsOwnOutputIsFreed) {
  auto layer =
      std::make_shared<CudnnLSTM>(CudnnRnnOptions{.network = {.num_layers = 1, .num_units = 4}});
  const std::weak_ptr<CudnnLSTM> kept = layer;
  {
    const layers::RnnResult first = (*layer)(source_);
    Model model({source_}, {(*layer)(first.output, first.state).output});
    ASSERT_EQ(layer->inbound_nodes().size(), 2u);
    EXPECT_TRUE(same_tensor(layer->get_input_at(1)[0], first.output));
    layer.reset();
    EXPECT_EQ(model.layers().size(), 1u);
    EXPECT_EQ(model({Tensor(Array(DType::kFloat32, {3, 2, 4}).view())})[0].shape(),
              (Shape{3, 2, 4}));
  }
  EXPECT_TRUE(kept.expired());
}

TEST_F(LayerOwnership, LayersAroundEachOtherAreFreed) {
  const auto make = [] {
    return std::make_shared<CudnnLSTM>(
        CudnnRnnOptions{.network = {.num_layers = 1, .num_units = 4}});
  };
  std::weak_ptr<CudnnLSTM> first, second;
  {
    std::unique_ptr<Model> model;
    {
      const auto a = make(), b = make();
      first = a;
      second = b;
      const Tensor once = ops::tanh((*b)((*a)(source_).output).output);
      const Tensor twice = (*a)(once).output;
      a->add_loss(ops::reduce_sum(twice), {once});
      model = std::make_unique<Model>(std::vector{source_}, std::vector{ops::tanh(twice)});
    }
    EXPECT_FALSE(second.expired()) << "it stands between the model's ends";
    EXPECT_EQ(model->layers().size(), 2u);
    const Tensor x(Array(DType::kFloat32, {3, 2, 4}).view());
    EXPECT_EQ((*model)({x})[0].shape(), (Shape{3, 2, 4}));
    EXPECT_EQ(model->losses().size(), 1u);
  }
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(second.expired());
}

TEST_F(LayerOwnership, ALayerWithLossesOfItsOutputsIsFreed) {
  auto layer = std::make_shared<CudnnLSTM>(CudnnRnnOptions{
      .network = {.num_layers = 1, .num_units = 4},
      .activity_regularizer = [](const Tensor& output) { return ops::reduce_sum(output); }});
  const std::weak_ptr<CudnnLSTM> kept = layer;
  {
    const Tensor output = (*layer)(source_).output;
    ASSERT_EQ(layer->losses().size(), 3u);
    EXPECT_EQ(layer->get_losses_for({source_}).size(), 3u);
    EXPECT_TRUE(depends_on(layer->losses()[0], {output}));
  }
  layer.reset();
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace openrnn
