// MPI, by a module that is opened when it is asked for.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

#include "openrnn/train_communicator.h"
#include "train/message.h"
#include "train/mpi/table.h"

namespace openrnn::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "libopenrnn_mpi.so";
constexpr const char* kVariable = "OPENRNN_MPI_LIBRARY";
constexpr int kFailed = 1;  // exit code of processes that are ended

/// Folders in which programs and libraries of this process lie that may have the module beside
/// them.
std::vector<fs::path> homes() {
  std::vector<fs::path> found;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&thread_communicators), &info) != 0 && info.dli_fname) {
    found.push_back(fs::path(info.dli_fname).parent_path());
  }
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!ignored) found.push_back(program.parent_path());
  return found;
}

std::vector<std::string> places() {
  if (const char* named = std::getenv(kVariable); named && *named) return {named};
  std::vector<std::string> all;
  for (const fs::path& home : homes()) {
    all.push_back((home / kModule).string());
    all.push_back((home.parent_path() / "lib" / kModule).string());
  }
  all.emplace_back(kModule);  // where the loader looks
  return all;
}

const OpenrnnMpiTable& open_table() {
  std::string problem;
  for (const std::string& path : places()) {
    std::error_code ignored;
    if (path != kModule && !fs::exists(path, ignored)) {
      if (std::getenv(kVariable)) problem = "no file " + path;
      continue;
    }
    // Global: Open MPI's own plug-ins look for its symbols there.
    void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!module) {
      const char* const why = dlerror();
      problem = why ? why : path;
      if (path != kModule) break;
      continue;
    }
    using Entry = const OpenrnnMpiTable* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(module, OPENRNN_MPI_ENTRY));
    if (entry && entry()->version == OPENRNN_MPI_TABLE_VERSION) return *entry();
    throw EngineError(message("mpi", "'", path,
                              "' is not of this version of the library, expected ", "the ", kModule,
                              " that was built with it"));
  }
  throw EngineError(
      message("mpi", "MPI cannot be opened: ", problem.empty() ? std::string(kModule) : problem,
              "; expected ", kModule,
              ", which the build makes where it finds MPI (Debian: libopenmpi-dev, ",
              "openmpi-bin), beside the program, or its path in ", kVariable));
}

const OpenrnnMpiTable& table() {
  static const OpenrnnMpiTable& opened = open_table();
  return opened;
}

void check(const char* problem) {
  if (problem) throw EngineError(message("mpi", problem, ", expected all processes to go on"));
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() : mpi_(table()) { check(mpi_.start(&rank_, &size_)); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool takes_any_thread() const override { return mpi_.takes_any_thread() != 0; }
  void all_to_all(const void* send, void* receive, std::size_t bytes) override {
    check(mpi_.all_to_all(send, receive, bytes));
  }
  void all_gather(const void* send, void* receive, std::size_t bytes) override {
    check(mpi_.all_gather(send, receive, bytes));
  }
  void all_reduce(DType dtype, std::int64_t count, void* values) override {
    check(mpi_.all_reduce(dtype == DType::kFloat64, static_cast<std::size_t>(count), values));
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    check(mpi_.broadcast(data, bytes, root));
  }
  void barrier() override { check(mpi_.barrier()); }
  void abort(const std::string& why) override { mpi_.abort(why.c_str(), kFailed); }

 private:
  const OpenrnnMpiTable& mpi_;
  int rank_ = 0, size_ = 1;
};

}  // namespace

bool started_by_mpi() {
  // Open MPI's mpirun; those of MPICH and its kin.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const value = std::getenv(name);
    if (value && std::atoi(value) > 1) return true;
  }
  return false;
}

std::unique_ptr<Communicator> mpi_communicator() { return std::make_unique<MpiCommunicator>(); }

void finish_mpi() { check(table().finish()); }

}  // namespace openrnn::train
