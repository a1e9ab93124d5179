// Networks by their text, which is what an attribute of an XLA call can hold.
#pragma once

#include <memory>
#include <string_view>

#include "openrnn/engine.h"

namespace openrnn::python::jax {

struct Network {
  ValidSpec spec;
  const Engine* engine;
  /// Elements of the opaque buffer.
  std::int64_t params;
};

/// The network of a text of spec_to_json, with the engine that OPENRNN_ENGINE names at the first
/// call, or the best one. Any thread may call it. Throws: ArgumentError, which names `call`, for
/// another text, and as choose_engine.
std::shared_ptr<const Network> network_of(std::string_view call, std::string_view text);

/// whole_reserve of a call. That of k times the rows takes no more than k times the bytes.
std::int64_t reserve_bytes(const Network& network, std::int64_t max_time, std::int64_t batch,
                           bool training);

}  // namespace openrnn::python::jax
