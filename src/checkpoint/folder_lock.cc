#include "checkpoint/folder_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn::checkpoint {
namespace {

using formats::Descriptor;

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) ? "an unknown host" : name;
}

Descriptor open_lock(const std::string& path) {
  const char* name = formats::c_path("CheckpointManager", path);
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Descriptor file(formats::uninterrupted([&] { return ::open(name, kFlags, 0666); }));
  if (!file.is_open()) formats::throw_io_error("CheckpointManager", path, errno);
  return file;
}

std::string holder_of(const Descriptor& file) {
  char text[200] = {};
  const ::ssize_t size = ::pread(file.get(), text, sizeof text, 0);
  return size > 0 ? excerpt({text, static_cast<std::size_t>(size)}) : "another process";
}

// On a full disk the name of the holder is missing; the lock works all the same.
void write_holder(const Descriptor& file) {
  const std::string text = message("process ", ::getpid(), " on ", host_name());
  if (::ftruncate(file.get(), 0) == 0) (void)!::pwrite(file.get(), text.data(), text.size(), 0);
}

}  // namespace

FolderLock::FolderLock(const std::string& path) : path_(path), owner_(::getpid()) {
  for (;;) {
    file_ = open_lock(path_);
    if (!formats::try_lock(file_)) {
      throw StateError(message("[CheckpointManager] ", formats::folder_of(path_), " is in use by ",
                               holder_of(file_), ", expected one run at a time in a folder"));
    }
    // Its last owner may have removed it after it was opened here.
    if (formats::identity_of(path_) == formats::identity_of(file_)) break;
  }
  write_holder(file_);
}

FolderLock::~FolderLock() {
  if (is_own()) ::unlink(path_.c_str());
}

bool FolderLock::is_own() const noexcept { return owner_ == ::getpid(); }

std::shared_ptr<FolderLock> FolderLock::take(const std::string& folder) {
  static std::mutex mutex;
  static std::map<std::pair<::dev_t, ::ino_t>, std::weak_ptr<FolderLock>> locks;
  const formats::FileIdentity identity = formats::identity_of(folder);
  const std::lock_guard guard(mutex);
  std::weak_ptr<FolderLock>& known = locks[{identity.device, identity.node}];
  std::shared_ptr<FolderLock> lock = known.lock();
  // What a fork copied is its parent's.
  if (!lock || !lock->is_own()) {
    lock = std::make_shared<FolderLock>(folder + "/openrnn.lock");
    known = lock;
  }
  return lock;
}

}  // namespace openrnn::checkpoint
