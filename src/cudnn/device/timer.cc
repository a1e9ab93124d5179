#include "cudnn/device/timer.h"

namespace openrnn::cudnn {
namespace {

Event measured(Context& context) {
  const Context::Current current(context);
  return Event(Event::Time::kMeasured);
}

}  // namespace

GpuTimer::GpuTimer(Context& context)
    : context_(context), start_(measured(context)), stop_(measured(context)) {}

void GpuTimer::start() {
  const Context::Current current(context_);
  start_.record(context_);
}

void GpuTimer::stop() {
  const Context::Current current(context_);
  stop_.record(context_);
}

double GpuTimer::milliseconds() {
  const Context::Current current(context_);
  stop_.wait();
  return Event::between(start_, stop_);
}

}  // namespace openrnn::cudnn
