// Trains a small language model on the cpu, on a device, and begun on either and resumed on the
// other, and compares the losses of every step.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "gpu/cpp/commands.h"
#include "gpu/cpp/text_training.h"
#include "openrnn/runtime.h"

namespace openrnn::gpu_bench {
namespace {

using Losses = std::vector<double>;

// What rounding does to the losses is measured, not guessed: float32 against float64 on the cpu, up
// to kAhead steps after the step in question, since one step may agree by chance. Another order of
// the sums is another sample of the same size, and a resumed run has two; kFactor covers the
// samples.
constexpr double kFactor = 16.0;
constexpr std::size_t kAhead = 4;
// Rounding of float64 over that of float32.
constexpr double kDoubleOverFloat = 0x1p-29;
// A loss is a mean of some hundred terms in the dtype, each side in an order of its own.
constexpr double kMean = 16.0;

/// A folder that is removed again.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "openrnn-across-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw IoError("[across] no temporary folder can be made");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string prefix() const { return path_ + "/model"; }

 private:
  std::string path_;
};

struct Route {
  const Device& first;
  const Device& second;
  std::string name() const {
    if (&first == &second) return std::string(first.name());
    return std::string(first.name()) + ", resumed on " + std::string(second.name());
  }
};

Losses train_along(const Route& route, const TrainingSizes& sizes, const train::Text& text) {
  Losses losses;
  const auto keep = [&losses](double loss) { losses.push_back(loss); };
  const Folder folder;
  {
    TextTraining training(sizes, text, route.first);
    training.run_to(sizes.steps / 2, keep);
    training.save(folder.prefix());
  }
  TextTraining training(sizes, text, route.second);
  training.restore(folder.prefix());
  training.run_to(sizes.steps, keep);
  return losses;
}

/// How far a loss may be from the cpu's.
Losses allowed(const Losses& as_float, const Losses& as_double, DType dtype) {
  Losses bounds;
  for (std::size_t i = 0; i < as_float.size(); ++i) {
    double drift = 0.0;
    for (std::size_t k = 0; k <= std::min(i + kAhead, as_float.size() - 1); ++k) {
      drift = std::max(drift, std::abs(as_float[k] - as_double[k]));
    }
    const double scale = dtype == DType::kFloat64 ? kDoubleOverFloat : 1.0;
    bounds.push_back(scale * (kFactor * drift + kMean * 0x1p-24 * std::abs(as_double[i])));
  }
  return bounds;
}

/// Prints one line; whether every loss is inside its bound.
bool compare(const std::string& name, const Losses& found, const Losses& wanted,
             const Losses& bounds) {
  double worst = 0.0;
  std::size_t at = 0;
  bool finite = found.size() == wanted.size();
  for (std::size_t i = 0; finite && i < wanted.size(); ++i) {
    const double share = std::abs(found[i] - wanted[i]) / bounds[i];
    finite = std::isfinite(found[i]);
    if (share > worst) {
      worst = share;
      at = i;
    }
  }
  const bool good = finite && worst <= 1.0 && wanted.back() < wanted.front();
  std::printf("%s  %s: %zu losses, %.4f to %.4f; worst at step %zu: off by %.2e, allowed %.2e\n",
              good ? "ok    " : "FAILED", name.c_str(), found.size(), found.empty() ? 0 : found[0],
              found.empty() ? 0 : found.back(), at + 1,
              finite ? std::abs(found[at] - wanted[at]) : NAN, bounds[at]);
  return good;
}

}  // namespace

bool across(const Device& other, std::int64_t steps) {
  const Device& cpu = device("cpu");
  const train::Text text = made_text(20000);
  TrainingSizes sizes;
  sizes.steps = steps;
  sizes.dropout = 0.2;  // our masks are the same on every device
  const auto of = [&](DType dtype, const Route& route) {
    sizes.dtype = dtype;
    return train_along(route, sizes, text);
  };
  const Losses as_float = of(DType::kFloat32, {cpu, cpu});
  const Losses as_double = of(DType::kFloat64, {cpu, cpu});
  int routes = 0, failed = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Losses& wanted = dtype == DType::kFloat32 ? as_float : as_double;
    const Losses bounds = allowed(as_float, as_double, dtype);
    for (const Route& route : {Route{other, other}, Route{cpu, other}, Route{other, cpu}}) {
      const std::string name = std::string(dtype_name(dtype)) + ", " + route.name();
      ++routes;
      failed += compare(name, of(dtype, route), wanted, bounds) ? 0 : 1;
    }
  }
  std::printf("%d of %d routes agree with the cpu, %lld steps each\n", routes - failed, routes,
              static_cast<long long>(steps));
  return failed == 0;
}

}  // namespace openrnn::gpu_bench
