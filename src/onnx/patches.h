// The inputs under a convolution's weights, moved to where a product reads them.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "openrnn/base.h"

namespace openrnn::onnx {

// One of the dimensions over which the weights are moved.
struct Axis {
  std::int64_t input = 0, kernel = 0, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0;  // what is padded
  std::int64_t output = 0;

  /// How many inputs the kernel spans.
  std::int64_t span() const { return (kernel - 1) * dilation + 1; }
};

struct Convolution {
  std::int64_t batch = 0, channels = 0, filters = 0, groups = 1;
  std::vector<Axis> axes;
  std::int64_t inputs = 0;     // of a channel
  std::int64_t taps = 0;       // of a filter, in one channel
  std::int64_t positions = 0;  // of an output channel

  std::int64_t group_channels() const { return channels / groups; }
  std::int64_t group_filters() const { return filters / groups; }
};

struct Positions {
  std::int64_t begin = 0, end = 0;  // counted through the whole batch
};

// `count` outputs from `first` on along the last axis, for one tap of the kernel: the inputs under
// it, zeros where it lies outside.
template <class T>
void copy_taps(const Axis& axis, std::int64_t tap, std::int64_t first, std::int64_t count,
               const T* line, T* to) {
  const std::int64_t from = tap * axis.dilation - axis.before;
  // The outputs whose input from + i * stride lies in [0, input).
  const auto outputs_below = [&](std::int64_t input) {
    const std::int64_t away = input - from;
    return away <= 0 ? 0 : (away - 1) / axis.stride + 1;
  };
  const std::int64_t low = std::clamp(outputs_below(0), first, first + count);
  const std::int64_t high = std::clamp(outputs_below(axis.input), low, first + count);
  to = std::fill_n(to, low - first, T{});
  if (axis.stride == 1 && high > low) {
    to = std::copy_n(line + (from + low), high - low, to);
  } else {
    for (std::int64_t i = low; i < high; ++i) *to++ = line[from + i * axis.stride];
  }
  std::fill_n(to, first + count - high, T{});
}

// Where the line of inputs of one tap begins in its channel, which the outer axes say; nothing
// where it is padding.
inline std::optional<std::int64_t> line_of(const Convolution& conv, std::int64_t output,
                                           std::int64_t tap) {
  std::int64_t at = 0, stride = 1;
  for (std::size_t d = conv.axes.size(); d-- > 0;) {
    const Axis& axis = conv.axes[d];
    if (d + 1 < conv.axes.size()) {
      const std::int64_t place =
          output % axis.output * axis.stride + tap % axis.kernel * axis.dilation - axis.before;
      if (place < 0 || place >= axis.input) return std::nullopt;
      at += place * stride;
    }
    output /= axis.output;
    tap /= axis.kernel;
    stride *= axis.input;
  }
  return at;
}

// columns[c * taps + tap][position], of the channels of one group.
template <class T>
void fill_columns(const Convolution& conv, std::int64_t group, const Positions& range, const T* x,
                  T* columns) {
  const Axis& last = conv.axes.back();
  const std::int64_t width = range.end - range.begin, channels = conv.group_channels();
  for (std::int64_t at = range.begin, next = 0; at < range.end; at = next) {
    const std::int64_t sample = at / conv.positions, output = at % conv.positions;
    const std::int64_t first = output % last.output;
    next = std::min(range.end, at + last.output - first);
    for (std::int64_t tap = 0; tap < conv.taps; ++tap) {
      const std::optional<std::int64_t> line = line_of(conv, output, tap);
      for (std::int64_t c = 0; c < channels; ++c) {
        T* to = columns + (c * conv.taps + tap) * width + (at - range.begin);
        if (!line) {
          std::fill_n(to, next - at, T{});
          continue;
        }
        const std::int64_t channel = sample * conv.channels + group * channels + c;
        copy_taps(last, tap % last.kernel, first, next - at, x + channel * conv.inputs + *line, to);
      }
    }
  }
}

// products [position][filter of the group] to out [N, M, ..].
template <class T>
void store(const Convolution& conv, std::int64_t group, const Positions& range, const T* products,
           T* out) {
  const std::int64_t filters = conv.group_filters();
  for (std::int64_t at = range.begin; at < range.end; ++at) {
    const std::int64_t sample = at / conv.positions, position = at % conv.positions;
    T* to = out + (sample * conv.filters + group * filters) * conv.positions + position;
    for (std::int64_t m = 0; m < filters; ++m, to += conv.positions) *to = *products++;
  }
}

}  // namespace openrnn::onnx
