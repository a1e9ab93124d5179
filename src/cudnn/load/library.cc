#include "cudnn/load/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

namespace openrnn::cudnn {
namespace {

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

// Folders that the user names come first; each may be a site-packages folder.
std::vector<std::string> named_folders() {
  std::vector<std::string> folders;
  std::istringstream list(environment("OPENRNN_CUDA_LIBRARIES"));
  for (std::string folder; std::getline(list, folder, ':');) {
    if (folder.empty()) continue;
    for (const char* inside :
         {"", "/nvidia/cudnn/lib", "/nvidia/cublas/lib", "/nvidia/cu13/lib", "/nvidia/nccl/lib"}) {
      folders.push_back(folder + inside);
    }
  }
  return folders;
}

std::vector<std::string> home_folders(const std::vector<const char*>& homes) {
  std::vector<std::string> folders;
  const auto add = [&folders](const std::string& home) {
    for (const char* inside : {"/lib64", "/lib", ""}) folders.push_back(home + inside);
  };
  for (const char* home : homes) {
    if (const std::string folder = environment(home); !folder.empty()) add(folder);
  }
  // Where the toolkit's own installer puts it.
  if (!homes.empty()) add("/usr/local/cuda");
  return folders;
}

void* open_in(const std::vector<std::string>& folders, const std::string& file) {
  for (const std::string& folder : folders) {
    if (void* handle = dlopen((folder + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

void* open_library(const std::string& file, const std::vector<const char*>& homes) {
  if (void* handle = open_in(named_folders(), file)) return handle;
  for (const int already : {RTLD_NOLOAD, 0}) {
    if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | already)) return handle;
  }
  return open_in(home_folders(homes), file);
}

}  // namespace

Library::Library(std::string file, std::vector<const char*> homes)
    : file_(std::move(file)), homes_(std::move(homes)), handle_(open_library(file_, homes_)) {
  if (handle_) return;
  problem_ = message(file_, " was not found in the folders of OPENRNN_CUDA_LIBRARIES ('",
                     environment("OPENRNN_CUDA_LIBRARIES"), "') nor on the system's library path");
  for (const char* home : homes_) {
    problem_ += message(" nor in ", home, " ('", environment(home), "')");
  }
}

void* Library::address(const char* symbol, const char* other) {
  if (!handle_) return nullptr;
  void* found = dlsym(handle_, symbol);
  if (!found && other) {
    if (void* beside = open_library(other, homes_)) found = dlsym(beside, symbol);
  }
  if (!found && problem_.empty()) problem_ = message(file_, " lacks ", symbol);
  return found;
}

}  // namespace openrnn::cudnn
