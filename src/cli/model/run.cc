// openrnn run: a recurrent network of a model file over an input file.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/excerpt.h"
#include "cli/commands.h"
#include "cli/model/input.h"
#include "cli/model/whole.h"
#include "openrnn/runtime.h"

namespace openrnn::cli {
namespace {

MappedNetwork find_network(const RunFlags& flags, MappedModel model) {
  std::vector<std::string> names;
  for (MappedNetwork& network : model.networks) {
    if (network.name == flags.network || (flags.network.empty() && model.networks.size() == 1)) {
      return std::move(network);
    }
    names.push_back(network.name);
  }
  if (names.empty()) {
    throw ArgumentError("[run] '" + flags.model + "' has no recurrent network, expected one" +
                        (model.notes.empty() ? "" : ": " + model.notes.front()));
  }
  const bool nameless = names.size() == 1 && names[0].empty();
  throw ArgumentError("[run] --network '" + excerpt(flags.network) + "', expected " +
                      (nameless ? "none: the only network there has no name"
                                : "one of: " + listed_excerpts(names)));
}

/// Input [T, B, I] (or [B, T, I]) in the network's dtype.
struct Input {
  Array values;
  /// The file has no axis for sequences, and neither will the output's.
  bool single = false;
};

Input load_input(const RunFlags& flags, const RnnSpec& spec) {
  require_file("--input", flags.input);
  Array values = read_input(flags.input);
  Shape shape = values.shape();
  const bool single = shape.size() == 2;
  if (single) shape.insert(shape.begin() + (flags.batch_major ? 0 : 1), 1);
  if (shape.size() != 3 || shape[2] != spec.input_size) {
    throw ArgumentError(fmt::format(
        "[run] --input has shape {}, expected [T, I] or {} with I = {}", to_string(values.shape()),
        flags.batch_major ? "[B, T, I]" : "[T, B, I]", spec.input_size));
  }
  return {as_floating(values, spec.dtype).reshaped(std::move(shape)), single};
}

std::vector<std::int32_t> load_lengths(const std::string& path, std::int64_t max_time,
                                       std::int64_t batch) {
  const Array values = read_npy(path);
  const bool integers = values.dtype() == DType::kInt32 || values.dtype() == DType::kInt64;
  if (!integers || values.shape() != Shape{batch}) {
    throw ArgumentError(fmt::format("[run] --lengths is {} {}, expected int32 or int64 [{}]",
                                    dtype_name(values.dtype()), to_string(values.shape()), batch));
  }
  std::vector<std::int32_t> lengths;
  for (std::int64_t i = 0; i < batch; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t length = values.dtype() == DType::kInt32 ? values.as<std::int32_t>()[at]
                                                                : values.as<std::int64_t>()[at];
    if (length < 0 || length > max_time) {
      throw ArgumentError(
          fmt::format("[run] --lengths has {} at {}, expected 0 to T = {}", length, i, max_time));
    }
    lengths.push_back(static_cast<std::int32_t>(length));
  }
  return lengths;
}

/// h [L*D, B, O] and c [L*D, B, U].
struct States {
  Array h, c;
};

// [L*D, W] of a file for each row.
void fill_rows(const Array& one, Array& all) {
  const std::int64_t batch = all.shape()[1];
  const std::size_t bytes = static_cast<std::size_t>(one.shape()[1]) * dtype_size(one.dtype());
  for (std::int64_t row = 0; row < all.shape()[0] * batch; ++row) {
    std::memcpy(
        static_cast<std::byte*>(all.data()) + static_cast<std::size_t>(row) * bytes,
        static_cast<const std::byte*>(one.data()) + static_cast<std::size_t>(row / batch) * bytes,
        bytes);
  }
}

void read_state(const ModelFile& file, const char* name, Array& state) {
  Array found = file.read(name);
  if (found.shape() != state.shape() || found.dtype() != state.dtype()) {
    throw ArgumentError(fmt::format("[run] --state has {} {} {}, expected {} {}", name,
                                    dtype_name(found.dtype()), to_string(found.shape()),
                                    dtype_name(state.dtype()), to_string(state.shape())));
  }
  state = std::move(found);
}

States initial_states(const RunFlags& flags, const MappedNetwork& network, std::int64_t batch) {
  const RnnSpec& spec = network.spec;
  States states{Array(spec.dtype, spec.h_shape(batch)), Array(spec.dtype, spec.c_shape(batch))};
  if (network.initial_h) fill_rows(*network.initial_h, states.h);
  if (network.initial_c) fill_rows(*network.initial_c, states.c);
  if (flags.state.empty() || !std::filesystem::exists(flags.state)) return states;
  const ModelFile file(flags.state);
  read_state(file, "h", states.h);
  if (spec.has_cell()) read_state(file, "c", states.c);
  return states;
}

void save_states(const RunFlags& flags, const RnnSpec& spec, const States& states) {
  if (flags.state.empty()) return;
  std::vector<NamedView> views{{"h", states.h.view()}};
  if (spec.has_cell()) views.push_back({"c", states.c.view()});
  write_safetensors(flags.state, views);
}

/// A run over all steps, in pieces of `piece`.
struct Stepped {
  const RnnSpec& spec;
  std::int64_t max_time, batch, piece;
  const Array& x;
  const std::vector<std::int32_t>& lengths;

  Array over(InferenceSession& session, States& states) const {
    Array y(spec.dtype, {max_time, batch, spec.output_size()});
    const std::size_t width = dtype_size(spec.dtype);
    const auto row_bytes = [&](std::int64_t size) {
      return static_cast<std::size_t>(batch * size) * width;
    };
    for (std::int64_t first = 0; first < max_time; first += piece) {
      const std::int64_t steps = std::min(piece, max_time - first);
      std::vector<std::int32_t> left;
      for (const std::int32_t length : lengths) {
        left.push_back(
            static_cast<std::int32_t>(std::clamp<std::int64_t>(length - first, 0, steps)));
      }
      ForwardArgs args;
      args.max_time = steps;
      args.batch = batch;
      args.sequence_lengths = left.empty() ? nullptr : left.data();
      args.x = static_cast<const std::byte*>(x.data()) +
               static_cast<std::size_t>(first) * row_bytes(spec.input_size);
      args.y = static_cast<std::byte*>(y.data()) +
               static_cast<std::size_t>(first) * row_bytes(spec.output_size());
      args.h0 = states.h.data();
      args.hn = states.h.data();
      args.c0 = spec.has_cell() ? states.c.data() : nullptr;
      args.cn = spec.has_cell() ? states.c.data() : nullptr;
      session.run(args);
    }
    return y;
  }
};

// [A, B, W] to [B, A, W].
Array swapped(const Array& from) {
  const Shape& shape = from.shape();
  Array to(from.dtype(), {shape[1], shape[0], shape[2]});
  const std::size_t bytes = static_cast<std::size_t>(shape[2]) * dtype_size(from.dtype());
  for (std::int64_t a = 0; a < shape[0]; ++a) {
    for (std::int64_t b = 0; b < shape[1]; ++b) {
      std::memcpy(
          static_cast<std::byte*>(to.data()) + static_cast<std::size_t>(b * shape[0] + a) * bytes,
          static_cast<const std::byte*>(from.data()) +
              static_cast<std::size_t>(a * shape[1] + b) * bytes,
          bytes);
    }
  }
  return to;
}

void save_output(const RunFlags& flags, Array y, bool single) {
  if (single) {
    const Shape shape = y.shape();
    y = std::move(y).reshaped({shape[0], shape[2]});
  } else if (flags.batch_major) {
    y = swapped(y);
  }
  // NumPy has no bfloat16; float32 holds each of its values.
  if (y.dtype() == DType::kBfloat16) y = cast(y.view(), DType::kFloat32);
  write_npy(flags.output, y.view());
  fmt::print("output {} {} in {}\n", dtype_name(y.dtype()), to_string(y.shape()), flags.output);
}

}  // namespace

int run(const RunFlags& flags) {
  use_threads(flags.threads);
  require_model("model", flags.model);
  MappedModel model = load_networks(flags.model, flags.hints);
  if (flags.network.empty() && is_whole(model)) {
    run_whole(flags, model);
    return 0;
  }
  MappedNetwork network = find_network(flags, std::move(model));
  if (flags.math) network.spec.compute.math = parse_math(*flags.math);
  const RnnSpec& spec = network.spec;
  if (flags.stream && spec.num_dirs() == 2) {
    throw ArgumentError(
        "[run] --stream with a bidirectional network, expected a unidirectional one: the other "
        "direction begins at the last step");
  }
  Input input = load_input(flags, spec);
  if (flags.batch_major) input.values = swapped(input.values);
  const std::int64_t max_time = input.values.shape()[0], batch = input.values.shape()[1];
  std::vector<std::int32_t> lengths;
  if (!flags.lengths.empty()) lengths = load_lengths(flags.lengths, max_time, batch);
  States states = initial_states(flags, network, batch);
  InferenceSession session(std::make_shared<const PackedModel>(spec, network.params.view()),
                           {.max_threads = 0});
  const Stepped stepped{spec,         max_time,
                        batch,        flags.stream.value_or(std::max<std::int64_t>(max_time, 1)),
                        input.values, lengths};
  Array y = stepped.over(session, states);
  save_output(flags, std::move(y), input.single);
  save_states(flags, spec, states);
  return 0;
}

}  // namespace openrnn::cli
