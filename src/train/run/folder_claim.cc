#include "train/run/folder_claim.h"

#include <filesystem>
#include <mutex>
#include <set>

#include "base/excerpt.h"
#include "openrnn/base.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

std::mutex claims_mutex;

std::set<std::string>& claimed() {
  static std::set<std::string> paths;
  return paths;
}

// Of one folder, whatever links lead to it.
std::string one_path(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  return error ? folder : path.string();
}

}  // namespace

FolderClaim::FolderClaim(const std::string& folder) : path_(one_path(folder)) {
  const std::lock_guard guard(claims_mutex);
  if (claimed().insert(path_).second) return;
  throw StateError(message("Run", excerpt(folder),
                           " is in use by another run of this process, expected one run at a time "
                           "in a folder"));
}

FolderClaim::~FolderClaim() {
  const std::lock_guard guard(claims_mutex);
  claimed().erase(path_);
}

}  // namespace openrnn::train
