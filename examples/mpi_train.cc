// A training run in several processes, from a program of your own.
//
//   mpirun -n 4 mpi_train TEXT OUT
//
// The parameters have the same bits for 1, 2 and 4 processes; a run that was ended goes on, with
// any of these numbers. MPI is opened when the program is started by mpirun, so it needs none
// alone.
#include <cstdio>
#include <exception>

#include "openrnn/openrnn.h"

namespace {

namespace train = openrnn::train;

void run(const std::string& text, const std::string& out) {
  const std::unique_ptr<train::Communicator> processes =
      train::started_by_mpi() ? train::mpi_communicator() : nullptr;
  const bool first = !processes || processes->rank() == 0;
  {
    train::RunOptions options{.out = out, .resume = true, .input = text};
    options.network = {{"units", 32}, {"layers", 2}, {"dropout", 0.1}};
    options.batch = 16, options.seq_len = 50, options.steps = 100;
    options.micro_batches = 4;  // each process computes 4 / W of them
    options.communicator = processes.get();
    train::Run training(options);
    training.train({.on_report = [](const train::StepReport& report) {
      if (report.step % 20 == 0)
        std::printf("step %ld: %.4f\n", long{report.step}, report.metric());
    }});
    if (first) std::printf("validation: %.4f bits per byte\n", training.validate());
  }
  if (processes) train::finish_mpi();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: mpirun -n PROCESSES %s TEXT OUT\n", argv[0]);
    return 2;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    // Without finish_mpi: mpirun then ends the other processes.
    std::fprintf(stderr, "mpi_train: %s\n", error.what());
    return 1;
  }
  return 0;
}
