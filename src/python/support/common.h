// What every binding includes: nanobind, the library's errors and values, callables kept in C++.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "openrnn/graph.h"
#include "python/support/casters.h"

namespace openrnn::python {

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT: "name"_a

/// A named argument of any kind, None included.
constexpr auto operator""_any(const char* name, std::size_t) { return nb::arg(name).none(); }

/// Runs `compute` with the interpreter lock released.
template <class F>
auto unlocked(F&& compute) {
  const nb::gil_scoped_release release;
  return compute();
}

/// Serializes calls of one object; a waiting thread releases the interpreter lock. The lock is
/// recursive, because Python callbacks may call the object again.
class CallLock {
 public:
  std::unique_lock<std::recursive_mutex> take() const {
    std::unique_lock lock(*mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      const nb::gil_scoped_release release;
      lock.lock();
    }
    return lock;
  }

 private:
  std::shared_ptr<std::recursive_mutex> mutex_ = std::make_shared<std::recursive_mutex>();
};

/// A Python object that C++ code may copy and release without holding the interpreter lock.
class Kept {
 public:
  Kept() = default;
  explicit Kept(nb::object object)
      : held_(object.release().ptr(), [](PyObject* held) {
          if (!held || !Py_IsInitialized()) return;
          const nb::gil_scoped_acquire lock;
          Py_DECREF(held);
        }) {}
  explicit operator bool() const noexcept { return held_ != nullptr; }
  nb::handle get() const noexcept { return held_.get(); }

 private:
  std::shared_ptr<PyObject> held_;
};

void bind_errors(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_variable(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_tape(nb::module_& m);
void bind_operations(nb::module_& m);
void bind_initializers(nb::module_& m);
void bind_layer(nb::module_& m);
void bind_cells(nb::module_& m);
void bind_loops(nb::module_& m);
void bind_models(nb::module_& m);
void bind_saveables(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_communicators(nb::module_& m);
void bind_micro_batches(nb::module_& m);
void bind_saver(nb::module_& m);
void bind_runs(nb::module_& m);
void bind_copies(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_sessions(nb::module_& m);
void bind_networks(nb::module_& m);
void bind_onnx(nb::module_& m);
void bind_torch(nb::module_& m);
void bind_jax(nb::module_& m);
void bind_keras(nb::module_& m);
/// Bound last: argument errors of everything that is bound before.
void bind_messages(nb::module_& m);

}  // namespace openrnn::python
