// Changes zip archives by their entries; directory, offsets and checksums stay right.
#pragma once

#include <vector>

#include "formats/zip/crc32.h"
#include "formats/zip/zip_reader.h"
#include "formats/zip/zip_records.h"
#include "hdf5.h"
#include "openrnn/base.h"
#include "pickle.h"
#include "records.h"

namespace openrnn::fuzz {

/// What an archive has inside, by its content.
inline void mutate_member(std::string* bytes, Chance& chance) {
  for (const Mutator mutator : {mutate_hdf5, mutate_pickle, mutate_npy}) {
    if (mutator(bytes, chance)) return;
  }
  const bool is_text = bytes->starts_with('{') || bytes->starts_with('[');
  if (is_text && !chance.one_in(8)) {
    mutate_json(bytes, chance);
  } else {
    chance.change_bytes(bytes);
  }
}

struct ZipMember {
  std::string name;
  /// The file's, and those that are stored, if they are others.
  std::string bytes, deflated;
  std::uint16_t method = 0;
};

/// A stream of stored blocks.
inline std::string deflate_stored(std::string_view bytes) {
  constexpr std::size_t kMostBlock = 0xffff;
  std::string out;
  do {
    const std::string_view block = bytes.substr(0, kMostBlock);
    bytes.remove_prefix(block.size());
    out += bytes.empty() ? '\1' : '\0';
    const auto size = static_cast<std::uint16_t>(block.size());
    formats::put_fixed(&out, size);
    formats::put_fixed(&out, static_cast<std::uint16_t>(~size));
    out += block;
  } while (!bytes.empty());
  return out;
}

class ZipText {
 public:
  /// With `wide` the offsets and sizes are in ZIP64 fields.
  ZipText(const std::vector<ZipMember>& members, bool has_checksums, bool wide)
      : has_checksums_(has_checksums), wide_(wide) {
    for (const ZipMember& member : members) add(member);
    end();
  }
  std::string take() { return std::move(out_); }

 private:
  void add(const ZipMember& member) {
    using formats::put_fixed;
    const std::string& stored = member.method == 0 ? member.bytes : member.deflated;
    const auto size = static_cast<std::uint16_t>(member.name.size());
    const std::uint32_t crc =
        has_checksums_ ? formats::crc32_extend(0, member.bytes.data(), member.bytes.size()) : 0;
    const std::uint64_t offset = out_.size();
    std::string fields;  // which both records have
    put_fixed(&fields, std::uint32_t{20});
    put_fixed(&fields, member.method);
    put_fixed(&fields, std::uint32_t{0});
    put_fixed(&fields, crc);
    put_fixed(&fields, wide_ ? formats::kZipIn64 : static_cast<std::uint32_t>(stored.size()));
    put_fixed(&fields, wide_ ? formats::kZipIn64 : static_cast<std::uint32_t>(member.bytes.size()));
    put_fixed(&fields, size);
    put_fixed(&out_, formats::kZipLocalSignature);
    out_ += fields;
    // PyTorch's elements begin at multiples of 64.
    const std::size_t start = out_.size() + 2 + member.name.size();
    const std::size_t space = (64 - (start + 4) % 64) % 64;
    put_fixed(&out_, static_cast<std::uint16_t>(4 + space));
    out_ += member.name;
    put_fixed(&out_, std::uint16_t{0x4246});
    put_fixed(&out_, static_cast<std::uint16_t>(space));
    out_.append(space, 'Z');
    out_ += stored;

    put_fixed(&directory_, formats::kZipCentralSignature);
    put_fixed(&directory_, std::uint16_t{20});
    directory_ += fields;
    put_fixed(&directory_, static_cast<std::uint16_t>(wide_ ? 28 : 0));
    put_fixed(&directory_, std::uint16_t{0});
    directory_.append(2 + 2 + 4, '\0');
    put_fixed(&directory_, wide_ ? formats::kZipIn64 : static_cast<std::uint32_t>(offset));
    directory_ += member.name;
    if (wide_) {
      put_fixed(&directory_, formats::kZip64Extra);
      put_fixed(&directory_, std::uint16_t{24});
      put_fixed(&directory_, std::uint64_t{member.bytes.size()});
      put_fixed(&directory_, std::uint64_t{stored.size()});
      put_fixed(&directory_, offset);
    }
    ++count_;
  }

  void end() {
    using formats::put_fixed;
    const std::uint64_t offset = out_.size(), bytes = directory_.size();
    out_ += directory_;
    if (wide_) {
      const std::uint64_t record = out_.size();
      put_fixed(&out_, formats::kZip64EndSignature);
      put_fixed(&out_, std::uint64_t{formats::kZip64EndBytes - 12});
      put_fixed(&out_, std::uint32_t{0});
      put_fixed(&out_, std::uint64_t{0});
      put_fixed(&out_, std::uint64_t{count_});
      put_fixed(&out_, std::uint64_t{count_});
      put_fixed(&out_, bytes);
      put_fixed(&out_, offset);
      put_fixed(&out_, formats::kZip64LocatorSignature);
      put_fixed(&out_, std::uint32_t{0});
      put_fixed(&out_, record);
      put_fixed(&out_, std::uint32_t{1});
    }
    put_fixed(&out_, formats::kZipEndSignature);
    put_fixed(&out_, std::uint32_t{0});
    put_fixed(&out_, count_);
    put_fixed(&out_, count_);
    put_fixed(&out_, static_cast<std::uint32_t>(bytes));
    put_fixed(&out_, wide_ ? formats::kZipIn64 : static_cast<std::uint32_t>(offset));
    put_fixed(&out_, std::uint16_t{0});
  }

  bool has_checksums_, wide_;
  std::string out_, directory_;
  std::uint16_t count_ = 0;
};

inline std::vector<ZipMember> zip_members(const formats::ZipArchive& archive) {
  std::vector<ZipMember> members;
  for (const formats::ZipEntry& entry : archive.entries()) {
    ZipMember member{.name = entry.name, .bytes = {}, .deflated = {}};
    member.method = entry.method;
    const std::string stored = archive.file().read_string(entry.offset, entry.stored_bytes);
    member.deflated = stored;
    try {
      member.bytes = archive.read_whole(entry);
    } catch (const Error&) {  // a damaged stream, which stays as it is
      member.bytes = entry.method == 0 ? stored : std::string();
    }
    members.push_back(std::move(member));
  }
  return members;
}

inline void change_members(std::vector<ZipMember>* members, Chance& chance) {
  ZipMember& member = chance.pick(*members);
  switch (chance.below(12)) {
    case 0:
      std::swap(member, chance.pick(*members));
      break;
    case 1:
      members->push_back(ZipMember(member));
      chance.change_bytes(&members->back().name, 4);
      break;
    case 2:
      chance.change_bytes(&member.name, 4);
      break;
    case 3:
      std::swap(member.bytes, chance.pick(*members).bytes);
      break;
    case 4:
      member.method = member.method == 0 ? formats::kZipDeflated : std::uint16_t{0};
      member.deflated = deflate_stored(member.bytes);
      break;
    case 5:
      if (member.method != 0) chance.change_bytes(&member.deflated);
      break;
    case 6:
      if (members->size() > 1) members->pop_back();
      break;
    default: {
      // What says something of the others is changed most: it is the first, or a text.
      ZipMember& inside = chance.one_in(2) ? members->front() : member;
      mutate_member(&inside.bytes, chance);
      if (inside.method != 0) inside.deflated = deflate_stored(inside.bytes);
    }
  }
}

inline bool mutate_zip(std::string* bytes, Chance& chance) {
  if (!bytes->starts_with("PK\x03\x04")) return false;
  try {
    const formats::MemorySource source("m", *bytes);
    const formats::ZipArchive archive(source);
    std::vector<ZipMember> members = zip_members(archive);
    if (members.empty()) return false;
    change_members(&members, chance);
    const bool has_checksums = archive.has_checksums() && !chance.one_in(16);
    std::string out = ZipText(members, has_checksums, chance.one_in(4)).take();
    // Now and then a byte of the records themselves.
    if (chance.one_in(8)) chance.change_bytes(&out, 0);
    *bytes = std::move(out);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A file of PyTorch: an archive, or the old form.
inline bool mutate_torch(std::string* bytes, Chance& chance) {
  return mutate_zip(bytes, chance) || mutate_pickle(bytes, chance);
}

}  // namespace openrnn::fuzz
