// What fuzzers do with a file beyond its bytes: networks are made of it with and without hints, and
// small ones are packed, run, saved and loaded again.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/crc/crc32c.h"
#include "memory_limit.h"
#include "openrnn/mapping.h"
#include "openrnn/runtime.h"

namespace openrnn::fuzz {

/// A folder for the files of one process, below TMPDIR.
inline const std::string& scratch_folder() {
  struct Folder {
    Folder() : path((std::filesystem::temp_directory_path() / "openrnn_fuzz_XXXXXX").string()) {
      require(::mkdtemp(path.data()) != nullptr, "there is no folder for scratch files");
    }
    ~Folder() {
      std::error_code error;
      std::filesystem::remove_all(path, error);
    }
    std::string path;
  };
  static const Folder folder;
  return folder.path;
}

inline std::string write_scratch(const std::string& name, std::string_view bytes) {
  const std::string path = scratch_folder() + "/" + name;
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  require(static_cast<bool>(file.flush()), "a scratch file cannot be written");
  return path;
}

/// Which hints there are follows from the bytes, so that a file gives the same each time.
inline MappingHints hints_of(std::string_view input) {
  const std::uint32_t bits = crc32c(input);
  MappingHints hints;
  hints.mode = bits & 1 ? RnnMode::kRnnTanh : RnnMode::kRnnRelu;
  hints.reset_after = (bits & 2) != 0;
  hints.recurrent_activation = make_cell_activation(bits & 4 ? CellActivationKind::kSigmoid
                                                             : CellActivationKind::kHardSigmoid);
  hints.forget_bias = bits & 8 ? 0.0 : 1.0;
  if (bits & 16) {
    RnnSpec& spec = hints.network.emplace();
    spec.mode = bits & 32 ? RnnMode::kGru : RnnMode::kLstm;
    spec.num_layers = 1 + (bits >> 6) % 3;
    spec.input_size = 1 + (bits >> 8) % 4;
    spec.num_units = 1 + (bits >> 10) % 4;
  }
  return hints;
}

/// That shapes are those which mapping.h promises.
inline void check_network(const MappedNetwork& network) {
  const RnnSpec& spec = network.spec;
  const std::int64_t size = params_size(spec), rows = spec.num_pseudo_layers();
  require(network.params.dtype() == spec.dtype && network.params.size() == size,
          "parameters of another size or dtype than the spec's");
  if (network.initial_h) {
    require(network.initial_h->dtype() == spec.dtype &&
                network.initial_h->shape() == Shape{rows, spec.hidden_size()},
            "an initial state of another shape or dtype than the spec's");
  }
  if (network.initial_c) {
    require(network.initial_c->dtype() == spec.dtype &&
                network.initial_c->shape() == Shape{rows, spec.num_units},
            "an initial cell of another shape or dtype than the spec's");
  }
  for (const auto& [name, slot] : network.slots) {
    require(slot.shape() == network.params.shape(), "a slot of another shape than the parameters");
  }
}

/// Three steps of one row.
inline void run_packed(std::shared_ptr<const PackedModel> model, const Array* h0, const Array* c0) {
  constexpr std::int64_t kTime = 3, kMostValues = 1 << 14;
  const RnnSpec& spec = model->spec();
  if (spec.input_size > kMostValues) return;
  const std::int64_t rows = spec.num_pseudo_layers();
  const Array x(spec.dtype, {kTime, 1, spec.input_size});
  Array y(spec.dtype, {kTime, 1, spec.output_size()}),
      hn(spec.dtype, {rows, 1, spec.hidden_size()}), cn(spec.dtype, {rows, 1, spec.num_units});
  InferenceSession session(std::move(model));
  session.run({.max_time = kTime,
               .batch = 1,
               .x = x.data(),
               .h0 = h0 ? h0->data() : nullptr,
               .c0 = c0 ? c0->data() : nullptr,
               .y = y.data(),
               .hn = hn.data(),
               .cn = spec.has_cell() ? cn.data() : nullptr,
               .max_threads = 1});
}

inline constexpr std::int64_t kMostParams = 1 << 14;

inline void run_network(const MappedNetwork& network) {
  check_network(network);
  if (network.params.size() > kMostParams) return;
  const MemoryLimit limit(MemoryLimit::kOfRun);
  try {
    run_packed(std::make_shared<PackedModel>(network.spec, network.params.view(),
                                             ModelOptions{.max_threads = 1}),
               network.initial_h ? &*network.initial_h : nullptr,
               network.initial_c ? &*network.initial_c : nullptr);
  } catch (const Error&) {  // what no engine has
  }
}

inline bool same_bytes(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.size_bytes() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Our own file gives back what it was given.
inline void check_round_trip(const MappedModel& model) {
  const std::string path = scratch_folder() + "/again.openrnn";
  try {
    save_networks(path, model, ModelFormat::kOpenrnn);
  } catch (const Error&) {  // two of one name
    return;
  }
  const MappedModel again = load_networks(path);
  require(again.networks.size() == model.networks.size(), "a network is lost in our own file");
  for (std::size_t i = 0; i < model.networks.size(); ++i) {
    const MappedNetwork &before = model.networks[i], &after = again.networks[i];
    require(before.name == after.name && before.spec == after.spec &&
                same_bytes(before.params, after.params) &&
                before.slots.size() == after.slots.size(),
            "a network is another one in our own file");
  }
}

inline void use_networks(const MappedModel& model) {
  std::int64_t params = 0;
  for (const MappedNetwork& network : model.networks) {
    run_network(network);
    params += network.params.size();
  }
  if (!model.networks.empty() && params <= kMostParams) {
    const MemoryLimit limit(MemoryLimit::kOfRun);
    check_round_trip(model);
  }
}

/// The networks of the file at that path, which `input` is the bytes of.
inline void fuzz_networks_at(const std::string& path, std::string_view input) {
  bool asks = crc32c(input) % 4 == 0;
  try {
    use_networks(load_networks(path));
  } catch (const ArgumentError&) {  // a hint is asked for
    asks = true;
  } catch (const Error&) {
  }
  if (!asks) return;
  try {
    use_networks(load_networks(path, hints_of(input)));
  } catch (const Error&) {
  }
}

inline void fuzz_networks(std::string_view input) {
  fuzz_networks_at(write_scratch("model", input), input);
}

}  // namespace openrnn::fuzz
