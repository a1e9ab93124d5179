// What the command line says, without the library that parses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace openrnn::cli {

/// An unset flag takes the run's value on --resume, else a default that may depend on the task.
struct TrainFlags {
  std::optional<std::string> task, input, valid, level, cell, optimizer, lr_schedule, dtype, target,
      math;
  std::optional<std::int64_t> layers, units, embedding, batch, seq_len, epochs, steps, warmup, seed,
      valid_every, patience, horizon;
  std::optional<double> lr, dropout, clip_norm, valid_fraction;
  std::optional<std::vector<std::string>> columns;
  // These change no bit of the run.
  std::string out = "out";
  bool resume = false;
  std::string device;
  int threads = 0;
  std::int64_t save_steps = 0;
  double save_seconds = 20.0;
  int keep = 5;
};

/// Of a network that runs and does not train.
struct ArithmeticFlags {
  std::optional<std::string> math, weights_dtype;
};

struct GenerateFlags {
  std::string run = "out";
  std::int64_t length = 500;
  double temperature = 0.8;
  std::int64_t top_k = 0;
  std::string prime;
  std::uint64_t seed = 0;
  std::string device;
  int threads = 0;
  ArithmeticFlags arithmetic;
};

struct EvalFlags {
  std::string run;
  std::string input, context;
  std::string device;
  int threads = 0;
  ArithmeticFlags arithmetic;
};

struct InspectFlags {
  std::string checkpoint;
  bool fast = false;
};

struct CheckCellsFlags {
  std::string run;
  std::string input;
  int threads = 0;
};

struct PlotFlags {
  std::string run;
  std::string output;
};

struct DoctorFlags {};

struct BenchFlags {
  std::string json, only;
  std::string device;
  int threads = 0;
  std::optional<double> seconds;
  bool company = false;
  ArithmeticFlags arithmetic;
};

using Flags = std::variant<TrainFlags, GenerateFlags, EvalFlags, InspectFlags, CheckCellsFlags,
                           PlotFlags, DoctorFlags, BenchFlags>;

/// Nothing when help or the version was asked for and printed. Throws: ArgumentError for flags that
/// cannot be understood.
std::optional<Flags> parse_flags(int argc, char** argv);

}  // namespace openrnn::cli
