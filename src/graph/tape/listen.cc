#include "graph/tape/listen.h"

#include <utility>

namespace openrnn::graph {
namespace {

constinit thread_local GradientListener* listening = nullptr;
constinit thread_local const EarlyParts* parts = nullptr;

}  // namespace

bool shared(const DeviceArray& array) {
  // The count includes the one that is counted.
  return array.empty() || array.borrowed() || array.share().use_count() > 2;
}

Listening::Listening(GradientListener* listener) : before_(std::exchange(listening, listener)) {}
Listening::~Listening() { listening = before_; }
GradientListener* Listening::current() { return listening; }

EarlyParts::EarlyParts(std::vector<EarlyPart> of_inputs)
    : of_inputs_(std::move(of_inputs)), before_(std::exchange(parts, this)) {}
EarlyParts::~EarlyParts() { parts = before_; }

EarlyPart early_part(std::size_t input) {
  if (!parts || input >= parts->of_inputs_.size()) return {};
  return parts->of_inputs_[input];
}

}  // namespace openrnn::graph
