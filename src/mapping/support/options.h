// Options of a network, and what a kind of file can hold of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "openrnn/spec.h"

namespace openrnn::mapping {

/// The same network with every option that says what the default says left at its default: a
/// recurrent activation 'sigmoid', auto_select, rnn_tanh with the activation relu.
RnnSpec plainest(RnnSpec spec);

/// Throws: UnsupportedError "[call] the network 'NAME' has peephole .., which FORMAT cannot hold"
/// naming each option of the network (not of training and computing) that is set and not among
/// `held`. `spec` is its plainest form.
void require_held(std::string_view call, std::string_view name, const RnnSpec& spec,
                  std::string_view format, std::span<const std::string_view> held);

/// "the network 'encoder'", "the network".
std::string network_called(std::string_view name);

}  // namespace openrnn::mapping
