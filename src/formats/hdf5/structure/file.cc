#include "formats/hdf5/structure/file.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/coding.h"
#include "formats/hdf5/structure/lookup3.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kSignatureBytes = 8;
// The superblock up to the root group's address, of versions 0 and 2; version 1 has 4 more bytes.
constexpr std::uint64_t kOldSuperblock = 96, kNewSuperblock = 48;

}  // namespace

bool Claims::add(std::uint64_t begin, std::uint64_t bytes) {
  if (bytes == 0) return true;
  const auto next = ends_.lower_bound(begin);
  if (next != ends_.end() && next->first - begin < bytes) return false;
  if (next != ends_.begin() && std::prev(next)->second > begin) return false;
  ends_.emplace_hint(next, begin, begin + bytes);
  return true;
}

Hdf5File::Hdf5File(const ByteSource& source) : source_(source) {
  const std::string version = source_.read_string(kSignatureBytes, 1);
  const auto number = static_cast<unsigned char>(version[0]);
  if (number <= 1) {
    read_old_superblock(number);
  } else if (number <= 3) {
    read_new_superblock();
  } else {
    refuse(kSignatureBytes,
           message("the superblock has version ", int{number}, ", expected at most 3"));
  }
}

void Hdf5File::read_old_superblock(unsigned version) {
  const std::string bytes = read(0, kOldSuperblock + (version ? 4 : 0), "the superblock");
  Hdf5Fields in(*this, 0, bytes, "the superblock");
  in.skip(kSignatureBytes + 5);
  const std::uint64_t offsets = in.number(1), lengths = in.number(1);
  in.skip(1 + 2 + 2 + 4 + (version ? 4 : 0));
  const std::uint64_t base = in.address();
  in.skip(8);  // free space
  const std::uint64_t end = in.address();
  check_sizes(offsets, lengths, base, end);
  in.skip(8 + 8);  // a driver, and the name of the root
  root_ = in.address();
}

void Hdf5File::read_new_superblock() {
  const std::string bytes = read(0, kNewSuperblock, "the superblock");
  check_lookup3(*this, 0, bytes, "the superblock");
  Hdf5Fields in(*this, 0, bytes, "the superblock");
  in.skip(kSignatureBytes + 1);
  const std::uint64_t offsets = in.number(1), lengths = in.number(1);
  in.skip(1);
  const std::uint64_t base = in.address();
  in.skip(8);  // the extension
  const std::uint64_t end = in.address();
  check_sizes(offsets, lengths, base, end);
  root_ = in.address();
}

void Hdf5File::check_sizes(std::uint64_t offsets, std::uint64_t lengths, std::uint64_t base,
                           std::uint64_t end) const {
  if (offsets != 8 || lengths != 8) {
    refuse(0, message("offsets and lengths have ", offsets, " and ", lengths,
                      " bytes, expected 8 of each"));
  }
  if (base != 0) refuse(0, message("the addresses begin at ", base, ", expected 0"));
  if (end > source_.size()) {
    fail(source_.size(), message("the file ends at byte ", source_.size(), ", expected ", end,
                                 " bytes as the superblock says"));
  }
}

void Hdf5File::take(std::uint64_t offset, std::uint64_t bytes, const std::string& what) {
  if (offset > source_.size() || bytes > source_.size() - offset) {
    fail(std::min(offset, source_.size()),
         message(what, " has ", bytes, " bytes at ", offset, ", expected it inside the file of ",
                 source_.size()));
  }
  if (!claims_.add(offset, bytes)) {
    fail(offset, message(what, " has ", bytes,
                         " bytes, some of which are used already, expected each once"));
  }
}

std::string Hdf5File::read(std::uint64_t offset, std::uint64_t bytes, const std::string& what) {
  take(offset, bytes, what);
  return source_.read_string(offset, bytes);
}

void Hdf5File::fail(std::uint64_t offset, const std::string& what) const {
  throw FormatError(source_.path(), offset, what);
}

void Hdf5File::refuse(std::uint64_t offset, const std::string& what) const {
  throw UnsupportedError(message("[", excerpt(source_.path()), " @ ", offset, "] ", what));
}

std::uint64_t Hdf5Fields::number(std::size_t bytes) {
  std::uint64_t value = 0;
  const std::string_view field = this->bytes(bytes);
  for (std::size_t i = field.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(field[i]);
  }
  return value;
}

std::string_view Hdf5Fields::bytes(std::uint64_t count) {
  if (count > rest_.size()) fail(message("ends, expected ", count, " more bytes"));
  const std::string_view field = rest_.substr(0, static_cast<std::size_t>(count));
  rest_.remove_prefix(field.size());
  return field;
}

void Hdf5Fields::expect(std::string_view signature) {
  if (!rest_.starts_with(signature)) fail("has no '" + std::string(signature) + "', expected it");
  rest_.remove_prefix(signature.size());
}

std::uint64_t Hdf5Fields::version(std::uint64_t least, std::uint64_t most) {
  const std::uint64_t found = number(1);
  if (found >= least && found <= most) return found;
  file_->refuse(offset() - 1, message(what_, " has version ", found, ", expected ", least,
                                      least == most ? "" : message(" to ", most)));
}

void Hdf5Fields::fail(const std::string& fault) const {
  file_->fail(offset(), what_ + " " + fault);
}

void check_lookup3(const Hdf5File& file, std::uint64_t offset, std::string_view block,
                   const std::string& what) {
  std::uint32_t stored = 0;
  if (block.size() < sizeof stored) file.fail(offset, what + " has no checksum, expected one");
  const std::string_view covered = block.substr(0, block.size() - sizeof stored);
  ByteCursor(block.substr(covered.size())).fixed(&stored);
  const std::uint32_t sum = lookup3(covered);
  if (sum != stored) {
    file.fail(offset, message(what, " has checksum ", sum, ", expected ", stored));
  }
}

}  // namespace openrnn::formats
