// Parameters that were packed once and are found again by a number.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "python/jax/networks.h"

namespace openrnn::python::jax {

/// An array of two words, which stands beside the opaque buffer that it was made of.
using Token = std::array<std::uint32_t, 2>;

/// Packs `params` of the network with that text, and keeps it until drop(). `address` is that of
/// memory which stays as it is until then, or 0.
Token hold(std::string_view text, const void* params, std::uintptr_t address);
void drop(const Token& token);
std::int64_t count_held();

/// What was packed of just these parameters, whose contents decide: at the held address without a
/// look at them. Null: nothing was; a changed buffer beside an old token is another one.
std::shared_ptr<const PackedParams> find_held(const Token& token, std::string_view text,
                                              const Network& network, const void* params);

}  // namespace openrnn::python::jax
