#include "python/jax/networks.h"

#include <map>
#include <mutex>

#include "base/message.h"
#include "openrnn/params.h"
#include "openrnn/runtime.h"
#include "python/jax/reserve.h"
#include "spec/json.h"

namespace openrnn::python::jax {
namespace {

RnnSpec spec_in(std::string_view call, std::string_view text) {
  const std::string source = "attribute network";
  JsonScanner json(source, 0, text);
  try {
    RnnSpec spec = spec::spec_from_json(json);
    json.end();
    return spec;
  } catch (const FormatError& error) {
    throw ArgumentError(message("[", call, "] ", error.what()));
  }
}

struct Networks {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Network>, std::less<>> all;
};

// Never destroyed: threads of XLA may still run when the process ends.
Networks& networks() {
  static auto* const found = new Networks;
  return *found;
}

}  // namespace

std::shared_ptr<const Network> network_of(std::string_view call, std::string_view text) {
  Networks& known = networks();
  const std::lock_guard lock(known.mutex);
  const auto found = known.all.find(text);
  if (found != known.all.end()) return found->second;
  const ValidSpec spec(spec_in(call, text));
  auto made =
      std::make_shared<const Network>(Network{spec, &choose_engine(spec), params_size(spec)});
  known.all.emplace(text, made);
  return made;
}

std::int64_t reserve_bytes(const Network& network, std::int64_t max_time, std::int64_t batch,
                           bool training) {
  ForwardArgs args;
  args.max_time = max_time;
  args.batch = batch;
  args.training = training;
  args.h0 = args.c0 = &args;  // the states are always given
  return whole_reserve(network.engine->reserve_bytes(network.spec, args));
}

}  // namespace openrnn::python::jax
