// How fast model files are loaded, and how much memory it takes, against a plain read of the file.
#pragma once

#include <functional>
#include <string>

#include "openrnn/mapping.h"

namespace openrnn::cli {

struct LoadCost {
  std::string kind;  // 'safetensors'
  double file_bytes = 0.0;
  /// Best of some rounds, in seconds of processor time: load_networks, and read() of the whole file
  /// into new memory.
  double load_seconds = 0.0, read_seconds = 0.0;
  /// Largest memory of a process that loads the file.
  double peak_bytes = 0.0;
  double rate_ratio() const { return read_seconds / load_seconds; }
  double memory_ratio() const { return peak_bytes / file_bytes; }
};

/// Of each kind of file whose name contains `only`: a file of about `megabytes` is written to
/// `folder`, read to bring it into the page cache, measured, each round in a process of its own,
/// and removed. Throws: IoError when a process fails, such as for want of memory or of space.
void measure_loading(const std::string& folder, std::int64_t megabytes, const std::string& only,
                     const std::function<void(const LoadCost&)>& report);

/// Milliseconds until an OpenRNN file of 1 MB is packed and can run, in a new process: the first
/// one, and the best of the next ten.
struct ReadyCost {
  double first_ms = 0.0, best_ms = 0.0;
};
ReadyCost measure_ready(const std::string& folder);

}  // namespace openrnn::cli
