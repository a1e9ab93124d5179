#include "formats/file/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <memory>
#include <system_error>
#include <utility>

#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

const char* kind_of(::mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a link";
  return S_ISREG(mode) ? "a file" : "a device";
}

[[noreturn]] void refuse_kind(std::string_view call, const std::string& path, ::mode_t mode) {
  if (S_ISDIR(mode)) throw_io_error(call, path, EISDIR);
  throw IoError(message("[", call, "] ", path, " is ", kind_of(mode), ", expected a file"));
}

[[noreturn]] void refuse_in_use(const std::string& path) {
  throw StateError(message("[create] ", path,
                           " is being written by another process, or by another writer of this "
                           "one, expected one at a time"));
}

bool is_unnamed_pipe(const char* path) {
  struct statfs status = {};
  return ::statfs(path, &status) == 0 && status.f_type == PIPEFS_MAGIC;
}

Descriptor open_checked(const std::string& path, bool takes_pipes) {
  const char* name = c_path("open", path);
  struct stat status = {};
  if (::stat(name, &status)) throw_io_error("open", path, errno);
  const bool pipe = takes_pipes && S_ISFIFO(status.st_mode) && is_unnamed_pipe(name);
  // Before it is opened: opening would unblock the writer of a FIFO, and may have side effects on a
  // device.
  if (!S_ISREG(status.st_mode) && !pipe) refuse_kind("open", path, status.st_mode);
  // Without O_NONBLOCK opening a FIFO that replaced it meanwhile would wait for a writer.
  Descriptor file(uninterrupted([&] { return ::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (!file.is_open() || ::fstat(file.get(), &status)) throw_io_error("open", path, errno);
  if (!S_ISREG(status.st_mode) && !(pipe && S_ISFIFO(status.st_mode))) {
    refuse_kind("open", path, status.st_mode);
  }
  return file;
}

FileIdentity identity_in(const struct stat& status) { return {status.st_dev, status.st_ino, true}; }

bool is_at(const Descriptor& file, const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && identity_in(status) == identity_of(file);
}

void remove_leftover(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status)) return;  // removed meanwhile
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    refuse_kind("create", path, status.st_mode);
  }
  const Descriptor lock = lock_existing(path);
  remove_file(path);
}

}  // namespace

void throw_io_error(std::string_view call, const std::string& path, int error) {
  throw IoError(message("[", call, "] ", path, ": ", std::generic_category().message(error)));
}

const char* c_path(std::string_view call, const std::string& path) {
  if (path.find('\0') == std::string::npos) return path.c_str();
  throw ArgumentError(
      message("[", call, "] the path ", excerpt(path), " holds a zero byte, expected none"));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

void Descriptor::close() noexcept {
  if (is_open()) ::close(release());
}

FileIdentity identity_of(const std::string& path) {
  struct stat status = {};
  return ::stat(c_path("open", path), &status) ? FileIdentity() : identity_in(status);
}

FileIdentity identity_of(const Descriptor& file) {
  struct stat status = {};
  return ::fstat(file.get(), &status) ? FileIdentity() : identity_in(status);
}

Descriptor open_regular(const std::string& path) { return open_checked(path, false); }

Descriptor open_readable(const std::string& path) {
  Descriptor file = open_checked(path, true);
  // Reading waits for the pipe's writer.
  ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
  return file;
}

bool try_lock(const Descriptor& file) noexcept {
  return uninterrupted([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) == 0 ||
         errno != EWOULDBLOCK;
}

void unlock(const Descriptor& file) noexcept {
  if (file.is_open()) ::flock(file.get(), LOCK_UN);
}

Descriptor create_new(const std::string& path) {
  const char* name = c_path("create", path);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  for (;;) {
    Descriptor file(uninterrupted([&] { return ::open(name, kFlags, 0666); }));
    if (file.is_open()) {
      // Another process may have removed it as a leftover before it was locked.
      if (!try_lock(file) || !is_at(file, path)) refuse_in_use(path);
      return file;
    }
    if (errno != EEXIST) throw_io_error("create", path, errno);
    remove_leftover(path);
  }
}

Descriptor lock_existing(const std::string& path) {
  const char* name = c_path("create", path);
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  for (;;) {
    Descriptor file(uninterrupted([&] { return ::open(name, kFlags); }));
    if (!file.is_open()) return file;
    if (!try_lock(file)) refuse_in_use(path);
    // Its last owner may have moved or removed it after it was opened here.
    if (is_at(file, path)) return file;
  }
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(c_path("rename", from), c_path("rename", to))) throw_io_error("rename", to, errno);
}

void remove_file(const std::string& path) {
  if (::unlink(c_path("remove", path)) && errno != ENOENT) throw_io_error("remove", path, errno);
}

bool file_exists(const std::string& path) {
  struct stat status = {};
  return ::stat(c_path("open", path), &status) == 0 && !S_ISDIR(status.st_mode);
}

bool is_own_file(const std::string& path) {
  struct stat status = {};
  return ::lstat(c_path("open", path), &status) == 0 && S_ISREG(status.st_mode);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const char* path = c_path("list", folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(path), ::closedir);
  if (!listing) {
    if (errno == ENOENT) return names;
    throw_io_error("list", folder, errno);
  }
  while (const dirent* item = ::readdir(listing.get())) names.emplace_back(item->d_name);
  return names;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

FolderSync::FolderSync(const std::string& path) : folder_(folder_of(path)) {
  const char* name = c_path("open", folder_);
  fd_ = Descriptor(uninterrupted([&] { return ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!fd_.is_open()) throw_io_error("open", folder_, errno);
}

void FolderSync::sync() const {
  // Some file systems cannot sync a folder and say so by EINVAL.
  if (uninterrupted([&] { return ::fsync(fd_.get()); }) && errno != EINVAL) {
    throw_io_error("sync", folder_, errno);
  }
}

}  // namespace openrnn::formats
