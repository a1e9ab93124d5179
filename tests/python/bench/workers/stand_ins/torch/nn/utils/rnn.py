"""Packed sequences: the padded ones with their lengths."""


class Packed:
    def __init__(self, data, lengths):
        self.data, self.lengths = data, lengths


def pack_padded_sequence(x, lengths, enforce_sorted):
    assert enforce_sorted is False and lengths.dtype == "int64"
    return Packed(x, lengths.data)


def pad_packed_sequence(packed, total_length):
    assert total_length == packed.data.shape[0]
    return packed.data, packed.lengths
