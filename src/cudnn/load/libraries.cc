#include "cudnn/load/libraries.h"

#include <pthread.h>

#include <atomic>
#include <memory>

#include "base/message.h"

namespace openrnn::cudnn {
namespace {

// cubins of CUDA 13 need its driver; cuDNN 9 is the first with this set of functions.
constexpr int kOldestDriver = 13000;
constexpr std::size_t kOldestCudnn = 90000, kFirstOfNextCudnn = 100000;

constinit std::atomic<bool> in_child{false};
void note_child() { in_child.store(true, std::memory_order_relaxed); }

std::string driver_problem(Libraries& all) {
  const DriverApi& driver = all.driver;
  if (const std::string problem = open_driver(all.driver); !problem.empty()) {
    return message("the NVIDIA driver is missing: ", problem,
                   "; install the driver (Debian: nvidia-driver) on a machine with an NVIDIA GPU");
  }
  if (driver.driver_version(&all.driver_version) != CUDA_SUCCESS) all.driver_version = 0;
  if (all.driver_version < kOldestDriver) {
    return message("the NVIDIA driver is of CUDA ", cuda_version_text(all.driver_version),
                   ", expected ", cuda_version_text(kOldestDriver),
                   " or newer; install a driver of version 580 or newer");
  }
  const CUresult started = driver.init(0);
  if (started == CUDA_SUCCESS) driver.device_count(&all.gpus);
  if (started == CUDA_ERROR_NO_DEVICE || (started == CUDA_SUCCESS && all.gpus == 0)) {
    return "the NVIDIA driver shows no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES";
  }
  if (started != CUDA_SUCCESS) {
    const char* text = nullptr;
    driver.error_string(started, &text);
    return message("the NVIDIA driver does not start: cuInit says '", text ? text : "", "' (",
                   static_cast<int>(started), "); look at nvidia-smi");
  }
  // From here on CUDA is initialized in this process.
  pthread_atfork(nullptr, nullptr, note_child);
  return {};
}

std::string cudnn_problem(Libraries& all) {
  const std::string problem = open_cudnn(all.cudnn);
  // The version first: an old one lacks functions because it is old.
  if (all.cudnn.version) all.cudnn_version = all.cudnn.version();
  if (all.cudnn.version &&
      (all.cudnn_version < kOldestCudnn || all.cudnn_version >= kFirstOfNextCudnn)) {
    return message("cuDNN is of version ", cudnn_version_text(all.cudnn_version),
                   ", expected 9.0.0 or newer of version 9; install cuDNN 9 for CUDA 13 (pip: "
                   "nvidia-cudnn-cu13)");
  }
  if (problem.empty()) return {};
  return message("cuDNN is missing: ", problem,
                 "; install cuDNN 9 for CUDA 13 (pip: nvidia-cudnn-cu13) and name its folder in "
                 "OPENRNN_CUDA_LIBRARIES");
}

std::string cublas_problem(Libraries& all) {
  const std::string problem = open_cublas(all.cublas);
  if (problem.empty()) return {};
  return message("cuBLAS is missing: ", problem,
                 "; install cuBLAS of CUDA 13 (pip: nvidia-cublas) and name its folder in "
                 "OPENRNN_CUDA_LIBRARIES");
}

std::unique_ptr<Libraries> open_all() {
  auto all = std::make_unique<Libraries>();
  all->missing = all->driver_missing = driver_problem(*all);
  // cuDNN opens cuBLAS by name, which succeeds for a library that is already open.
  for (std::string (*problem)(Libraries&) : {cublas_problem, cudnn_problem}) {
    if (all->missing.empty()) all->missing = problem(*all);
  }
  return all;
}

}  // namespace

// Not a static local: after a fork while another thread initializes one, the child would wait for
// ever. Two threads may both open everything, which is harmless; one result is kept.
const Libraries& libraries() {
  static constinit std::atomic<const Libraries*> known{nullptr};
  const Libraries* all = known.load(std::memory_order_acquire);
  if (all) return *all;
  std::unique_ptr<Libraries> mine = open_all();
  if (known.compare_exchange_strong(all, mine.get(), std::memory_order_acq_rel)) {
    all = mine.release();
  }
  return *all;
}

bool forked() { return in_child.load(std::memory_order_relaxed); }

std::string forked_text() {
  return "the process was forked from one that had used a GPU, which CUDA does not allow; start it "
         "by spawn, or fork before the first use";
}

std::string cuda_version_text(int version) {
  return message(version / 1000, ".", version % 1000 / 10);
}

std::string cudnn_version_text(std::size_t version) {
  // Version 8 and older: 8907 is 8.9.7.
  const std::size_t major = version < 10000 ? 1000 : 10000;
  return message(version / major, ".", version % major / 100, ".", version % 100);
}

}  // namespace openrnn::cudnn
