#include "python/torch/saved_calls.h"

#include <nanobind/ndarray.h>

#include <mutex>
#include <unordered_map>

namespace openrnn::python::torch {
namespace {

// What a capsule 'dltensor' holds, which ndarray hides.
struct Managed {
  nb::dlpack::dltensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};

struct Token {
  Managed managed{};
  std::int64_t shape = 1;
  alignas(64) std::uint8_t byte = 0;
};

// A saved call is found only while its token's memory is, so no other memory can have the address.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, std::shared_ptr<const SavedCall>> calls;
};

// Never destroyed: tensors may outlive the module.
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

// Called by whoever frees the tensor, with or without the interpreter lock.
void free_token(Managed* managed) {
  auto* const token = static_cast<Token*>(managed->context);
  std::shared_ptr<const SavedCall> freed;  // outside of the lock
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.calls.find(&token->byte);
    if (found != all.calls.end()) {
      freed = std::move(found->second);
      all.calls.erase(found);
    }
  }
  delete token;
}

// Of a capsule that nobody took.
void free_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->deleter(managed);
}

}  // namespace

nb::object token_of(std::shared_ptr<const SavedCall> saved) {
  auto token = std::make_unique<Token>();
  nb::dlpack::dltensor& tensor = token->managed.tensor;
  tensor.data = &token->byte;
  tensor.device = {nb::device::cpu::value, 0};
  tensor.ndim = 1;
  tensor.dtype = nb::dtype<std::uint8_t>();
  tensor.shape = &token->shape;
  token->managed.context = token.get();
  token->managed.deleter = free_token;
  nb::object capsule = nb::steal(PyCapsule_New(&token->managed, "dltensor", free_capsule));
  if (!capsule.is_valid()) throw nb::python_error();
  const Token* const kept = token.release();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.calls[&kept->byte] = std::move(saved);
  return capsule;
}

std::shared_ptr<const SavedCall> find_saved(const void* at) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.calls.find(at);
  return found == all.calls.end() ? nullptr : found->second;
}

std::int64_t count_saved() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return static_cast<std::int64_t>(all.calls.size());
}

}  // namespace openrnn::python::torch
