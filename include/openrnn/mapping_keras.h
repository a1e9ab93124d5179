// The arrays of Keras's recurrent layers and the parameters of networks.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn {

/// The canonical form of get_weights() of keras.layers.LSTM, GRU and SimpleRNN, of Bidirectional
/// (forward, then backward) and of several layers one behind the other: kernel [I, G*U],
/// recurrent_kernel [U, G*U], and with use_bias bias [G*U], or [2, G*U] of a GRU that resets after
/// the product. Gates are i f c o and z r h.
/// Throws: UnsupportedError for options that Keras lacks, among them two biases but for that GRU;
/// ArgumentError for a wrong count, shape or dtype, and as RnnSpec::validate.
OPENRNN_API CanonicalParams canonical_from_keras(const ValidSpec& spec,
                                                 std::span<const ConstArrayView> arrays);
/// The inverse. Throws: as above, and as canonical_to_params.
OPENRNN_API std::vector<Array> keras_from_canonical(const ValidSpec& spec,
                                                    std::span<const ConstArrayView> weights,
                                                    std::span<const ConstArrayView> biases);

}  // namespace openrnn
