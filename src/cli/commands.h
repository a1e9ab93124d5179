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
/// Throws: IoError when what was printed did not all arrive.
void flush_stdout();

}  // namespace openrnn::cli
