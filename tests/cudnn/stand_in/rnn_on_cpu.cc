#include "cudnn/stand_in/rnn_on_cpu.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "cudnn/stand_in/rnn_number.h"
#include "openrnn/params.h"
#include "reference/sequence_gradient.h"

namespace openrnn::stand_in {
namespace {

using Values = std::vector<double>;

cudaDataType cuda_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF ? CUDA_R_16F : type == CUDNN_DATA_FLOAT ? CUDA_R_32F : CUDA_R_64F;
}

Values read(cudnnDataType_t type, const void* from, std::int64_t count) {
  if (!from) return {};
  const Numbers numbers(cuda_type(type), from, count);
  Values values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = numbers.get(i);
  return values;
}

void write(cudnnDataType_t type, const std::vector<Number>& values, void* to) {
  if (!to) return;
  const Numbers numbers(cuda_type(type), to, static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    numbers.set(static_cast<std::int64_t>(i), values[i].value);
  }
}

// A sequence in memory as the loops read it: every step, time-major.
Values read_sequence(const DataDescriptor& at, const void* from) {
  const Values memory = read(at.type, from, at.count() * at.width);
  const auto width = static_cast<std::size_t>(at.width);
  Values values(static_cast<std::size_t>(at.time) * static_cast<std::size_t>(at.batch) * width);
  for (int t = 0; t < at.time; ++t) {
    for (int b = 0; b < at.batch; ++b) {
      if (t >= at.lengths[static_cast<std::size_t>(b)]) continue;
      const auto place = static_cast<std::size_t>(at.place(t, b)) * width;
      const auto to = (static_cast<std::size_t>(t) * static_cast<std::size_t>(at.batch) +
                       static_cast<std::size_t>(b)) *
                      width;
      std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(place), width,
                  values.begin() + static_cast<std::ptrdiff_t>(to));
    }
  }
  return values;
}

// Padding becomes 0 with a fill, else what a GPU may well leave there.
void write_sequence(const DataDescriptor& at, const std::vector<Number>& values, void* to) {
  const auto width = static_cast<std::size_t>(at.width);
  std::vector<Number> memory(static_cast<std::size_t>(at.count()) * width);
  for (int t = 0; t < at.time; ++t) {
    for (int b = 0; b < at.batch; ++b) {
      const bool inside = t < at.lengths[static_cast<std::size_t>(b)];
      if (!inside && at.packed()) continue;
      const auto place = static_cast<std::size_t>(at.place(t, b)) * width;
      const auto from = (static_cast<std::size_t>(t) * static_cast<std::size_t>(at.batch) +
                         static_cast<std::size_t>(b)) *
                        width;
      for (std::size_t k = 0; k < width; ++k) {
        memory[place + k] = inside ? values[from + k] : Number(at.fills ? 0.0 : std::nan(""));
      }
    }
  }
  write(at.type, memory, to);
}

ConstArrayView view(const Values& values) {
  return {values.empty() ? nullptr : values.data(),
          DType::kFloat64,
          {static_cast<std::int64_t>(values.size())}};
}

// What a forward call leaves for backward. The reserve space holds its number.
struct Record {
  RnnDescriptor rnn;
  std::vector<int> lengths;
  reference::Call call;
  std::vector<Number> params;
  Values x, hx, cx, y;
  reference::Tape<Number> tape;
  std::vector<Number> gradient;  // of the weights, after backward_data
  bool has_gradient = false;

  /// Roughly how many numbers it holds.
  std::size_t size() const {
    const auto step =
        static_cast<std::size_t>(std::int64_t{2} * rnn.input_size + std::int64_t{12} * rnn.hidden);
    std::size_t steps = 0;
    for (const auto& each : tape) steps += each.size();
    return params.size() + x.size() + y.size() + gradient.size() + steps * step;
  }
};

struct Records {
  std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<const Record>> all;
  std::uint64_t next = 1;
  std::size_t numbers = 0;
};
Records& records() {
  static auto* all = new Records;
  return *all;
}

constexpr std::uint64_t kMagic = 0x0DDC0FFEE0DDF00D;

// Fills the whole reserve space, so that a copy of a part is found.
void leave_record(void* reserve, std::size_t bytes, std::shared_ptr<const Record> record) {
  const std::lock_guard lock(records().mutex);
  const std::uint64_t number = records().next++;
  records().numbers += record->size();
  records().all[number] = std::move(record);
  // The oldest are of calls that nobody asks for any more.
  constexpr std::size_t kMost = std::size_t{1} << 25;
  while (records().numbers > kMost && records().all.size() > 1) {
    records().numbers -= records().all.begin()->second->size();
    records().all.erase(records().all.begin());
  }
  auto* words = host_of<std::uint64_t>(reserve, bytes / 8);
  for (std::size_t i = 0; i < bytes / 8; ++i) words[i] = kMagic + number * (i + 1);
}

std::shared_ptr<const Record> find_record(const void* reserve, std::size_t bytes) {
  const std::lock_guard lock(records().mutex);
  const auto* words = host_of<std::uint64_t>(reserve, bytes / 8);
  const std::uint64_t number = words[0] - kMagic;
  for (std::size_t i = 0; i < bytes / 8; ++i) {
    if (words[i] != kMagic + number * (i + 1)) {
      throw std::runtime_error("the reserve space is not what a call of cuDNN left");
    }
  }
  const auto found = records().all.find(number);
  if (found == records().all.end()) throw std::runtime_error("the reserve space is of no call");
  return found->second;
}

Operand operand_of(const RnnDescriptor& rnn) {
  if (rnn.type != CUDNN_DATA_FLOAT) return Operand::kWhole;
  if (rnn.math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) return Operand::kHalf;
  // The variable goes before every math type.
  const long override = setting("NVIDIA_TF32_OVERRIDE", rnn.math == CUDNN_FMA_MATH ? 0 : 1);
  return override != 0 && setting("STAND_IN_CAPABILITY", 90) >= 80 ? Operand::kTf32
                                                                   : Operand::kWhole;
}

reference::Network network_of(const RnnDescriptor& rnn) {
  reference::Network net = reference::make_network(rnn.spec());
  if (operand_of(rnn) != Operand::kWhole) net.math = Math::kBf16;
  net.dropout = static_cast<double>(rnn.dropout.rate);
  return net;
}

// The weights in the reference's order, as the products see them.
std::vector<Number> read_weights(const RnnDescriptor& rnn, const void* from) {
  const RnnSpec spec = rnn.spec();
  const ParamsLayout layout(spec);
  const WeightPlaces places = weight_places(spec);
  const Values memory = read(rnn.type, from, places.size);
  std::vector<Number> params(static_cast<std::size_t>(layout.size()));
  const auto take = [&](std::span<const ParamRegion> regions, const auto& starts, bool operands) {
    for (std::size_t r = 0; r < regions.size(); ++r) {
      for (std::int64_t k = 0; k < regions[r].size(); ++k) {
        const Number value(memory[static_cast<std::size_t>(starts[r] + k)]);
        params[static_cast<std::size_t>(regions[r].offset + k)] = operands ? as_bf16(value) : value;
      }
    }
  };
  take(layout.weights(), places.weights, operand_of(rnn) != Operand::kWhole);
  take(layout.biases(), places.biases, false);
  return params;
}

/// What the states of dropout hold.
struct Generator {
  std::uint64_t magic, seed, draws;
};
constexpr std::uint64_t kGenerator = 0xD12095ED12095E00;

/// Moves on with every call, as cuDNN's does.
DropoutKey draw(void* states) {
  auto* const generator = host_of<Generator>(states, 1);
  if (generator->magic != kGenerator) {
    throw std::runtime_error("the generator of dropout was never set up");
  }
  // Another one than the library's.
  return {generator->seed ^ 0x5EED, 77 + generator->draws++};
}

reference::Call call_of(const RnnDescriptor& rnn, const DataDescriptor& at, bool training) {
  reference::Call call;
  call.max_time = static_cast<std::size_t>(at.time);
  call.batch = static_cast<std::size_t>(at.batch);
  for (const int length : at.lengths) call.lengths.push_back(static_cast<std::size_t>(length));
  call.training = training && rnn.dropout.rate > 0.0F;
  if (call.training) call.key = draw(rnn.dropout.states);
  return call;
}

void expect_same(const Values& now, const Values& then, const char* what) {
  if (now.size() != then.size() ||
      (!now.empty() && std::memcmp(now.data(), then.data(), now.size() * sizeof(double)) != 0)) {
    throw std::runtime_error(std::string(what) + " of backward is not that of forward");
  }
}

std::int64_t state_size(const RnnDescriptor& rnn, int batch, int width) {
  return std::int64_t{rnn.layers} * (rnn.direction == CUDNN_BIDIRECTIONAL ? 2 : 1) * batch * width;
}

void check_call(const Record& record, const RnnGradient& call) {
  const RnnDescriptor& a = record.rnn;
  const RnnDescriptor& b = call.rnn;
  if (a.algo != b.algo || a.math != b.math || a.flags != b.flags || !(a.spec() == b.spec()) ||
      record.lengths != call.x_at.lengths) {
    throw std::runtime_error("the descriptors of backward are not those of forward");
  }
  expect_same(read(b.type, call.hx, state_size(b, call.x_at.batch, b.projection)), record.hx, "hx");
  expect_same(read_sequence(call.y_at, call.y), record.y, "y");
}

}  // namespace

void set_up_generator(void* states, std::uint64_t seed) {
  *host_of<Generator>(states, 1) = {kGenerator, seed, 0};
}

void run_forward(const RnnCall& call) {
  Number::operand = operand_of(call.rnn);
  auto record = std::make_shared<Record>();
  const reference::Network net = network_of(call.rnn);
  const int batch = call.x_at.batch;
  record->rnn = call.rnn;
  record->lengths = call.x_at.lengths;
  record->call = call_of(call.rnn, call.x_at, call.reserve != nullptr);
  record->params = read_weights(call.rnn, call.weights);
  record->x = read_sequence(call.x_at, call.x);
  record->hx = read(call.rnn.type, call.hx, state_size(call.rnn, batch, call.rnn.projection));
  record->cx = read(call.rnn.type, call.cx, state_size(call.rnn, batch, call.rnn.hidden));
  auto result = reference::forward<Number>(
      net, record->call,
      {record->params.data(), view(record->x), view(record->hx), view(record->cx)});
  write_sequence(call.y_at, result.y, call.y);
  write(call.rnn.type, result.hn, call.hy);
  if (call.rnn.cell == CUDNN_LSTM) write(call.rnn.type, result.cn, call.cy);
  if (!call.reserve) return;
  record->y = read_sequence(call.y_at, call.y);
  record->tape = std::move(result.tape);
  leave_record(call.reserve, call.reserve_bytes, record);
}

void run_backward_data(const RnnGradient& call) {
  const auto before = find_record(call.reserve, call.reserve_bytes);
  if (before->has_gradient) {
    throw std::runtime_error("the reserve space of backward_data was modified by backward before");
  }
  check_call(*before, call);
  Number::operand = operand_of(call.rnn);
  if (call.rnn.cell == CUDNN_LSTM) {
    expect_same(
        read(call.rnn.type, call.cx, state_size(call.rnn, call.x_at.batch, call.rnn.hidden)),
        before->cx, "cx");
  }
  const reference::Network net = network_of(call.rnn);
  const Values dy = read_sequence(call.y_at, call.dy);
  const int batch = call.x_at.batch;
  const Values dhy =
      read(call.rnn.type, call.dhy, state_size(call.rnn, batch, call.rnn.projection));
  const Values dcy = read(call.rnn.type, call.dcy, state_size(call.rnn, batch, call.rnn.hidden));
  const std::vector<Number> params = read_weights(call.rnn, call.weights);
  auto result = reference::backward<Number>(net, before->call, before->tape,
                                            {params.data(), view(dy), view(dhy), view(dcy)});
  write_sequence(call.x_at, result.dx, call.dx);
  write(call.rnn.type, result.dh0, call.dhx);
  if (call.rnn.cell == CUDNN_LSTM) write(call.rnn.type, result.dc0, call.dcx);
  auto after = std::make_shared<Record>(*before);
  after->tape.clear();
  after->gradient = std::move(result.dparams);
  after->has_gradient = true;
  leave_record(call.reserve, call.reserve_bytes, after);
}

void run_backward_weights(const RnnGradient& call) {
  const auto before = find_record(call.reserve, call.reserve_bytes);
  if (!before->has_gradient || before->gradient.empty()) {
    throw std::runtime_error("backward_weights must come once, after backward_data");
  }
  check_call(*before, call);
  expect_same(read_sequence(call.x_at, call.x), before->x, "x");
  const RnnSpec spec = call.rnn.spec();
  const ParamsLayout layout(spec);
  const WeightPlaces places = weight_places(spec);
  const Numbers memory(cuda_type(call.rnn.type), call.dweights, places.size);
  const auto add = [&](std::span<const ParamRegion> regions, const auto& starts) {
    for (std::size_t r = 0; r < regions.size(); ++r) {
      for (std::int64_t k = 0; k < regions[r].size(); ++k) {
        const double more = before->gradient[static_cast<std::size_t>(regions[r].offset + k)].value;
        memory.set(starts[r] + k, memory.get(starts[r] + k) + more);
      }
    }
  };
  add(layout.weights(), places.weights);
  add(layout.biases(), places.biases);
  auto after = std::make_shared<Record>(*before);
  after->gradient.clear();
  leave_record(call.reserve, call.reserve_bytes, after);
}

}  // namespace openrnn::stand_in
