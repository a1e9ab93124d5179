#include "cudnn/rnn/cudnn_engine.h"

#include <array>
#include <utility>

#include "cudnn/gpu/context.h"
#include "engine/cudnn_entry.h"

namespace openrnn::cudnn {
namespace {

[[noreturn]] void later() { throw UnsupportedError("[cudnn] not yet, expected later"); }

class CudnnEngine final : public Engine {
 public:
  explicit constexpr CudnnEngine(int ordinal) : ordinal_(ordinal) {}
  constexpr ~CudnnEngine() override {}  // g++ 12 does not know a defaulted one in time

  std::string_view name() const override { return "cudnn"; }
  const Device* device() const override { return &gpu_device(ordinal_); }
  std::string description() const override { return gpu_description(ordinal_); }
  std::string unsupported(const RnnSpec&) const override { return "not yet"; }
  std::string_view math_kind(const RnnSpec& spec) const override {
    return spec.dtype == DType::kFloat64 ? "float64" : to_string(spec.math);
  }
  std::shared_ptr<const PackedParams> pack(const RnnSpec&, const ConstArrayView&,
                                           PackFor) const override {
    later();
  }
  std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams>, std::int64_t,
                                            std::int64_t) const override {
    later();
  }
  void forward(const ForwardArgs&, Workspace*) const override { later(); }
  std::unique_ptr<SavedForward> forward_saving(const ForwardArgs&) const override { later(); }
  void backward(const BackwardArgs&) const override { later(); }

 private:
  int ordinal_;
};

template <int... Ordinals>
constexpr std::array<CudnnEngine, sizeof...(Ordinals)> make_engines(
    std::integer_sequence<int, Ordinals...>) {
  return {CudnnEngine(Ordinals)...};
}

// Constants: a static local that another thread makes at a fork is never finished in the child.
constexpr auto kEngines = make_engines(std::make_integer_sequence<int, kMostGpus>());

}  // namespace

const Engine& cudnn_engine(int ordinal) { return kEngines[static_cast<std::size_t>(ordinal)]; }

}  // namespace openrnn::cudnn
