// Streaming inference with openrnn::core: one time step a call, the state updated in place.
#include <openrnn/runtime.h>

#include <iostream>
#include <vector>

int main() {
  openrnn::RnnSpec spec;
  spec.mode = openrnn::RnnMode::kLstm;
  spec.num_layers = 2;
  spec.num_units = 64;
  spec.input_size = 8;

  // Weights would come from a file; here they are random.
  const openrnn::Array params = openrnn::initialize_params(openrnn::ParamsLayout(spec), /*seed=*/1);
  const auto model = std::make_shared<openrnn::PackedModel>(spec, params.view());
  openrnn::InferenceSession session(model);
  session.prepare(/*max_batch=*/1, /*max_time=*/1);  // from here on nothing is allocated

  std::vector<float> x(8), y(64), h(128), c(128);  // h and c: [layers, batch, units], zeros
  for (int step = 0; step < 5; ++step) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1F * static_cast<float>(step) - 0.05F;
    openrnn::ForwardArgs args;
    args.max_time = args.batch = 1;
    args.x = x.data();
    args.y = y.data();
    args.h0 = args.hn = h.data();
    args.c0 = args.cn = c.data();
    session.run(args);
    std::cout << "step " << step << ": y[0] = " << y[0] << '\n';
  }
  return 0;
}
