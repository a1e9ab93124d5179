// What the command line says, without the library that parses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "openrnn/mapping.h"
#include "openrnn/train_run.h"

namespace openrnn::cli {

/// The flags are the options of a run, with dashes for underscores.
struct TrainFlags {
  train::RunOptions run;
  /// 'none' or 'mpi'; unset: mpi where mpirun has started several processes.
  std::optional<std::string> communicator;
  std::optional<train::Reduction> reduction;
  std::string device;
  int threads = 0;
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

struct ForecastFlags {
  std::string run;
  std::string input;
  /// Rows; the run's horizon unless given.
  std::optional<std::int64_t> horizon;
  bool plot = false;
  std::string device;
  int threads = 0;
  ArithmeticFlags arithmetic;
};

struct InspectFlags {
  std::string checkpoint;
  bool fast = false;
  bool json = false;
  MappingHints hints;
};

struct ConvertFlags {
  std::string in, out, to;
  MappingHints hints;
};

struct RunFlags {
  std::string model, input, output, network, lengths, state;
  bool batch_major = false;
  std::optional<std::int64_t> stream;
  std::optional<std::string> math;
  int threads = 0;
  MappingHints hints;
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
  bool cells = false;
  bool gradients = false;
  /// A folder for files, and their size.
  std::string load;
  std::int64_t megabytes = 1024;
  ArithmeticFlags arithmetic;
};

using Flags =
    std::variant<TrainFlags, GenerateFlags, EvalFlags, InspectFlags, CheckCellsFlags, PlotFlags,
                 DoctorFlags, BenchFlags, ConvertFlags, RunFlags, ForecastFlags>;

/// "--seq-len" of "seq_len".
std::string flag_of(std::string option);

/// Nothing when help or the version was asked for and printed. Throws: ArgumentError for flags that
/// cannot be understood.
std::optional<Flags> parse_flags(int argc, char** argv);

}  // namespace openrnn::cli
