#include "cudnn/stand_in/faults.h"

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "cudnn/stand_in/numbers.h"

namespace openrnn::stand_in {
namespace {

bool is_known_to_be_safe(const RnnDescriptor& rnn, int rows) {
  const long capability = setting("STAND_IN_CAPABILITY", 90);
  return rnn.type == CUDNN_DATA_HALF && rnn.layers == 1 && rnn.direction == CUDNN_UNIDIRECTIONAL &&
         rnn.hidden % 128 == 0 && rnn.hidden <= 1024 && rnn.input_size % 128 == 0 &&
         rows % 8 == 0 && rows <= 128 && capability != 75 && capability != 86 &&
         (rnn.cell != CUDNN_GRU || capability < 80);
}

bool is_wrong(const RnnDescriptor& rnn, const std::string& what) {
  const char* wrong = std::getenv("STAND_IN_WRONG_STATIC");
  return wrong && what == wrong && rnn.algo == CUDNN_RNN_ALGO_PERSIST_STATIC;
}

void scale(const RnnDescriptor& rnn, const void* memory, std::int64_t count, double factor) {
  if (!memory) return;
  const auto type = rnn.type == CUDNN_DATA_HALF    ? CUDA_R_16F
                    : rnn.type == CUDNN_DATA_FLOAT ? CUDA_R_32F
                                                   : CUDA_R_64F;
  const Numbers numbers(type, memory, count);
  for (std::int64_t i = 0; i < count; ++i) numbers.set(i, factor * numbers.get(i));
}

std::int64_t planes(const RnnDescriptor& rnn, int rows) {
  return std::int64_t{rnn.layers} * (rnn.direction == CUDNN_BIDIRECTIONAL ? 2 : 1) * rows;
}

}  // namespace

void run_persistent(const RnnDescriptor& rnn, int rows) {
  if (rnn.algo != CUDNN_RNN_ALGO_PERSIST_STATIC) return;
  const bool runs = is_known_to_be_safe(rnn, rows) || setting("STAND_IN_PERSIST_ANYWHERE", 0) != 0;
  if (!runs || setting("STAND_IN_FAULT_STATIC", 0) != 0) {
    throw std::runtime_error("an illegal access of a persistent kernel");
  }
}

void spoil(const RnnCall& call) {
  const RnnDescriptor& rnn = call.rnn;
  const std::int64_t h = planes(rnn, call.x_at.batch) * rnn.projection;
  const std::int64_t c = planes(rnn, call.x_at.batch) * rnn.hidden;
  const bool inputs = is_wrong(rnn, "inputs");
  if (is_wrong(rnn, "hy") || inputs) scale(rnn, call.hy, h, 2.0);
  if (is_wrong(rnn, "cy")) scale(rnn, call.cy, c, 2.0);
  if (!inputs) return;
  scale(rnn, call.x, call.x_at.count() * call.x_at.width, NAN);
  scale(rnn, call.hx, h, NAN);
  scale(rnn, call.cx, c, NAN);
  scale(rnn, call.weights, weight_places(rnn.spec()).size, NAN);
}

void spoil(const RnnGradient& call) {
  const RnnDescriptor& rnn = call.rnn;
  const std::int64_t h = planes(rnn, call.x_at.batch) * rnn.projection;
  const std::int64_t c = planes(rnn, call.x_at.batch) * rnn.hidden;
  if (is_wrong(rnn, "dx")) scale(rnn, call.dx, call.x_at.count() * call.x_at.width, 2.0);
  if (is_wrong(rnn, "dhx")) scale(rnn, call.dhx, h, 2.0);
  if (is_wrong(rnn, "dcx")) scale(rnn, call.dcx, c, 2.0);
  if (is_wrong(rnn, "dweights")) {
    scale(rnn, call.dweights, weight_places(rnn.spec()).size, 2.0);
  }
}

}  // namespace openrnn::stand_in
