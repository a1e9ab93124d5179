// Times calls of ONNX Runtime's Run: what a program in C++ does around them is this loop.
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace {

// Of the C API: null, or what went wrong.
using Run = void* (*)(void* session, const void* run_options, const char* const* input_names,
                      const void* const* inputs, std::size_t input_count,
                      const char* const* output_names, std::size_t output_count, void** outputs);

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

/// `warm` calls, then `count` timed ones, in nanoseconds. Outputs that are null are made by the
/// first call.
extern "C" void* ort_loop(Run run, void* session, const char* const* input_names,
                          const void* const* inputs, std::size_t input_count,
                          const char* const* output_names, void** outputs, std::size_t output_count,
                          std::int64_t count, std::int64_t warm, std::int64_t* nanoseconds) {
  for (std::int64_t i = -warm; i < count; ++i) {
    const std::int64_t begin = now();
    void* const failed = run(session, nullptr, input_names, inputs, input_count, output_names,
                             output_count, outputs);
    if (failed) return failed;
    if (i >= 0) nanoseconds[i] = now() - begin;
  }
  return nullptr;
}
