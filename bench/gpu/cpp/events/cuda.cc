// The events of a GPU.
#include "cudnn/device/gpu.h"
#include "cudnn/gpu/busy_clock.h"
#include "cudnn/rnn/piece.h"
#include "gpu/cpp/clock.h"

namespace openrnn::gpu_bench {
namespace {

cudnn::Context& context_of(const Device& device) {
  return dynamic_cast<const cudnn::GpuDevice&>(device).context();
}

}  // namespace

std::vector<double> times_between_events(const Device& device, long count,
                                         const std::function<void()>& call) {
  using cudnn::Context, cudnn::Event;
  Context& context = context_of(device);
  const auto mark = [&context](Event& event) {
    const Context::Current current(context);
    event.record(context);
  };
  std::vector<Event> events;
  {
    const Context::Current current(context);
    for (long i = 0; i <= count; ++i) events.emplace_back(Event::Time::kMeasured);
    context.wait();
  }
  mark(events[0]);
  for (std::size_t i = 1; i < events.size(); ++i) {
    call();
    mark(events[i]);
  }
  const Context::Current current(context);
  events.back().wait();
  std::vector<double> times;
  for (std::size_t i = 1; i < events.size(); ++i) {
    times.push_back(Event::between(events[i - 1], events[i]) * 1e6);
  }
  return times;
}

std::function<double()> watch_work(const Device& device) {
  cudnn::Context& context = context_of(device);
  const cudnn::Context::Current current(context);
  auto clock = std::make_shared<cudnn::BusyClock>(context);
  return [clock]() mutable {
    const double milliseconds = clock->milliseconds();
    clock.reset();
    return milliseconds;
  };
}

std::vector<std::string> chosen_algorithms() { return cudnn::choices_so_far(); }

}  // namespace openrnn::gpu_bench
