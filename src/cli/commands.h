// The subcommands. Each returns an exit code: 0, or 130 after Ctrl-C; faults are thrown.
#pragma once

#include "cli/flags.h"
#include "openrnn/train_run.h"

namespace openrnn::cli {

int run(const TrainFlags& flags);
int run(const GenerateFlags& flags);
int run(const EvalFlags& flags);
int run(const ForecastFlags& flags);
int run(const InspectFlags& flags);
int run(const CheckCellsFlags& flags);
int run(const PlotFlags& flags);
int run(const DoctorFlags& flags);
int run(const BenchFlags& flags);
int run(const ConvertFlags& flags);
int run(const RunFlags& flags);

/// What the flags ask for. Throws: ArgumentError for an unknown name.
train::ArithmeticChoice choice_of(const ArithmeticFlags& flags);
/// 0 leaves the default.
void use_threads(int threads);
/// Empty leaves the default. Throws: as openrnn::device.
void use_device(const std::string& device);
/// Throws: ArgumentError naming the flag unless `path` names something that can be a file; what
/// only reading it tells is left to its reader.
void require_file(const std::string& flag, const std::string& path);
/// The same of a model: it may also be a folder, or the prefix of a checkpoint.
void require_model(const std::string& flag, const std::string& path);
/// An error as the tool ends with it: 1 for those of the machine, 2 for those of the user.
struct Fault {
  int code;
  std::string text;
};
Fault fault_of(const std::exception& error);
/// One line on stderr.
void complain(const Fault& fault);
/// Throws: IoError when what was printed did not all arrive.
void flush_stdout();

}  // namespace openrnn::cli
