// The events of a GPU.
#include "cudnn/device/event.h"
#include "cudnn/device/gpu.h"
#include "gpu/cpp/clock.h"

namespace openrnn::gpu_bench {

std::vector<double> times_between_events(const Device& device, long count,
                                         const std::function<void()>& call) {
  using cudnn::Context, cudnn::Event;
  Context& context = dynamic_cast<const cudnn::GpuDevice&>(device).context();
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

}  // namespace openrnn::gpu_bench
