// The classes of recurrent layers: what each one makes of CudnnRnn.
#include "openrnn/layers.h"

namespace openrnn::layers {
namespace {

// relu and tanh are modes of their own: with them a network is one of cuDNN's.
CudnnRnnOptions with_mode(CudnnRnnOptions options) {
  RnnSpec& network = options.network;
  if (network.mode != RnnMode::kRnnRelu) network.mode = RnnMode::kRnnTanh;
  if (!network.activation) return options;
  const bool relu = network.activation->kind == CellActivationKind::kRelu;
  network.mode = relu ? RnnMode::kRnnRelu : RnnMode::kRnnTanh;
  if (network.activation == RnnSpec{.mode = network.mode}.candidate_activation()) {
    network.activation.reset();
  }
  return options;
}

}  // namespace

CudnnLSTM::CudnnLSTM(Names names, CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kLstm, names, std::move(options)) {}
CudnnGRU::CudnnGRU(Names names, CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kGru, names, std::move(options)) {}

CudnnLSTM::CudnnLSTM(CudnnRnnOptions options)
    : CudnnLSTM(Names{"CudnnLSTM", "cudnn_lstm"}, std::move(options)) {}
CudnnGRU::CudnnGRU(CudnnRnnOptions options)
    : CudnnGRU(Names{"CudnnGRU", "cudnn_gru"}, std::move(options)) {}
CudnnRNNTanh::CudnnRNNTanh(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kRnnTanh, Names{"CudnnRNNTanh", "cudnn_rnn_tanh"}, std::move(options)) {}
CudnnRNNRelu::CudnnRNNRelu(CudnnRnnOptions options)
    : CudnnRnn(RnnMode::kRnnRelu, Names{"CudnnRNNRelu", "cudnn_rnn_relu"}, std::move(options)) {}

LSTM::LSTM(CudnnRnnOptions options) : CudnnLSTM(Names{"LSTM", "lstm"}, std::move(options)) {}
GRU::GRU(CudnnRnnOptions options) : CudnnGRU(Names{"GRU", "gru"}, std::move(options)) {}
RNN::RNN(CudnnRnnOptions options)
    : CudnnRnn(with_mode(options).network.mode, Names{"RNN", "rnn"}, with_mode(options)) {}

std::shared_ptr<CudnnLSTM> CudnnLSTM::from_config(CudnnRnnOptions config) {
  return std::make_shared<CudnnLSTM>(std::move(config));
}

std::shared_ptr<CudnnGRU> CudnnGRU::from_config(CudnnRnnOptions config) {
  return std::make_shared<CudnnGRU>(std::move(config));
}

std::shared_ptr<CudnnRNNTanh> CudnnRNNTanh::from_config(CudnnRnnOptions config) {
  return std::make_shared<CudnnRNNTanh>(std::move(config));
}

std::shared_ptr<CudnnRNNRelu> CudnnRNNRelu::from_config(CudnnRnnOptions config) {
  return std::make_shared<CudnnRNNRelu>(std::move(config));
}

std::shared_ptr<LSTM> LSTM::from_config(CudnnRnnOptions config) {
  return std::make_shared<LSTM>(std::move(config));
}

std::shared_ptr<GRU> GRU::from_config(CudnnRnnOptions config) {
  return std::make_shared<GRU>(std::move(config));
}

std::shared_ptr<RNN> RNN::from_config(CudnnRnnOptions config) {
  return std::make_shared<RNN>(std::move(config));
}

std::shared_ptr<CudnnRnn> CudnnRnn::another(CudnnRnnOptions options) const {
  return make_cudnn_rnn(std::move(options));
}

std::shared_ptr<CudnnRnn> LSTM::another(CudnnRnnOptions options) const {
  return from_config(std::move(options));
}

std::shared_ptr<CudnnRnn> GRU::another(CudnnRnnOptions options) const {
  return from_config(std::move(options));
}

std::shared_ptr<CudnnRnn> RNN::another(CudnnRnnOptions options) const {
  return from_config(std::move(options));
}

std::unique_ptr<CudnnRnn> make_cudnn_rnn(CudnnRnnOptions options) {
  switch (options.network.mode) {
    case RnnMode::kLstm:
      return std::make_unique<CudnnLSTM>(std::move(options));
    case RnnMode::kGru:
      return std::make_unique<CudnnGRU>(std::move(options));
    case RnnMode::kRnnTanh:
      return std::make_unique<CudnnRNNTanh>(std::move(options));
    default:
      return std::make_unique<CudnnRNNRelu>(std::move(options));
  }
}

}  // namespace openrnn::layers
