// Shared libraries that are opened at first use and never closed.
#pragma once

#include <string>
#include <vector>

#include "base/message.h"

namespace openrnn::cudnn {

/// Opens libraries and finds functions in them; remembers the first one that is missing.
class Library {
 public:
  /// Looks for `file` in this order: folders of OPENRNN_CUDA_LIBRARIES (and, below each of them,
  /// where Python wheels of NVIDIA keep libraries); what the process has loaded already; the
  /// system's path; the folders lib64 and lib of what `homes` name in the environment.
  Library(std::string file, std::vector<const char*> homes);

  /// Sets `function` to the symbol of that name. `file` names another library to look in when this
  /// one lacks it.
  template <class Function>
  void find(const char* symbol, Function*& function, const char* other = nullptr) {
    function = reinterpret_cast<Function*>(address(symbol, other));
  }
  /// Where it was searched, or the first missing symbol; empty when all was found.
  const std::string& problem() const noexcept { return problem_; }

 private:
  void* address(const char* symbol, const char* other);

  std::string file_, problem_;
  std::vector<const char*> homes_;
  void* handle_ = nullptr;
};

}  // namespace openrnn::cudnn
