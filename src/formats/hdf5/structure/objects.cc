#include "formats/hdf5/structure/objects.h"

#include <algorithm>
#include <deque>

#include "base/message.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kOldHeaderBytes = 16;
// Of a message: its bytes are a reference to another place.
constexpr std::uint64_t kSharedMessage = 2;
constexpr std::string_view kHeaderSignature = "OHDR", kContinuationSignature = "OCHK";

bool is_known(std::uint64_t type) {
  switch (static_cast<Hdf5MessageType>(type)) {
    case Hdf5MessageType::kDataspace:
    case Hdf5MessageType::kLinkInfo:
    case Hdf5MessageType::kDatatype:
    case Hdf5MessageType::kLink:
    case Hdf5MessageType::kExternalFiles:
    case Hdf5MessageType::kLayout:
    case Hdf5MessageType::kFilters:
    case Hdf5MessageType::kAttribute:
    case Hdf5MessageType::kContinuation:
    case Hdf5MessageType::kSymbolTable:
    case Hdf5MessageType::kAttributeInfo:
      return true;
  }
  return false;
}

// A header, or a continuation of one.
struct HeaderBlock {
  std::uint64_t offset = 0, bytes = 0;
};

class HeaderReader5 {
 public:
  HeaderReader5(Hdf5File& file, Hdf5Object* object) : file_(file), object_(object) {}

  void read() {
    const std::string head = file_.source().read_string(object_->address, kHeaderSignature.size());
    if (head == kHeaderSignature) {
      read_new();
    } else {
      read_old();
    }
  }

 private:
  void read_old() {
    const std::uint64_t at = object_->address;
    const std::string head = file_.read(at, kOldHeaderBytes, "an object header");
    Hdf5Fields in(file_, at, head, "an object header");
    in.version(1, 1);
    in.skip(1 + 2 + 4);  // a reserved byte, counts of messages and of references
    blocks_.push_back({at + kOldHeaderBytes, in.number(4)});
    while (!blocks_.empty()) {
      const HeaderBlock block = blocks_.front();
      blocks_.pop_front();
      const std::string bytes = file_.read(block.offset, block.bytes, "an object header");
      Hdf5Fields messages(file_, block.offset, bytes, "an object header");
      while (messages.remaining() >= 8) {
        const std::uint64_t type = messages.number(2), size = messages.number(2);
        const std::uint64_t flags = messages.number(1);
        messages.skip(3);
        take(&messages, type, size, flags);
      }
    }
  }

  void read_new() {
    const std::uint64_t at = object_->address;
    // Signature, version, flags; the rest depends on the flags.
    constexpr std::uint64_t kFixed = 6;
    const std::string head = file_.source().read_string(at, kFixed);
    Hdf5Fields fixed(file_, at, head, "an object header");
    fixed.expect(kHeaderSignature);
    fixed.version(2, 2);
    const std::uint64_t flags = fixed.number(1);
    const std::uint64_t size_bytes = std::uint64_t{1} << (flags & 3u);
    const std::uint64_t skipped = kFixed + (flags & 0x20u ? 16 : 0) + (flags & 0x10u ? 4 : 0);
    const std::string size = file_.source().read_string(at + skipped, size_bytes);
    const std::uint64_t messages =
        Hdf5Fields(file_, at + skipped, size, "an object header").number(size_bytes);
    const bool ordered = (flags & 4u) != 0;
    if (messages > file_.source().size()) {
      file_.fail(at, message("an object header has ", messages, " bytes, expected it inside"));
    }
    read_block({at, skipped + size_bytes + messages + 4}, skipped + size_bytes, ordered);
    while (!blocks_.empty()) {
      const HeaderBlock block = blocks_.front();
      blocks_.pop_front();
      read_block(block, kContinuationSignature.size(), ordered);
    }
  }

  // Messages lie between `skipped` bytes and the checksum.
  void read_block(const HeaderBlock& block, std::uint64_t skipped, bool ordered) {
    const std::string bytes = file_.read(block.offset, block.bytes, "an object header");
    check_lookup3(file_, block.offset, bytes, "an object header");
    if (block.offset != object_->address && !bytes.starts_with(kContinuationSignature)) {
      file_.fail(block.offset, "an object header does not go on here, expected 'OCHK'");
    }
    Hdf5Fields in(file_, block.offset, std::string_view(bytes).substr(0, bytes.size() - 4),
                  "an object header");
    in.skip(skipped);
    const std::size_t head = ordered ? 6 : 4;
    while (in.remaining() >= head) {
      const std::uint64_t type = in.number(1), size = in.number(2), flags = in.number(1);
      if (ordered) in.skip(2);
      take(&in, type, size, flags);
    }
  }

  void take(Hdf5Fields* in, std::uint64_t type, std::uint64_t size, std::uint64_t flags) {
    const std::uint64_t offset = in->offset();
    const std::string_view bytes = in->bytes(size);
    if (!is_known(type)) return;
    if (flags & kSharedMessage) {
      file_.refuse(offset, message("message ", type,
                                   " of an object is shared with others, expected it there"));
    }
    if (static_cast<Hdf5MessageType>(type) == Hdf5MessageType::kContinuation) {
      Hdf5Fields place(file_, offset, bytes, "a continuation of an object header");
      const std::uint64_t at = place.address(), count = place.number(8);
      blocks_.push_back({at, count});
      return;
    }
    object_->messages.push_back({static_cast<Hdf5MessageType>(type), offset, std::string(bytes)});
  }

  Hdf5File& file_;
  Hdf5Object* object_;
  std::deque<HeaderBlock> blocks_;
};

}  // namespace

const Hdf5Message* Hdf5Object::find(Hdf5MessageType type) const {
  const auto found = std::find_if(messages.begin(), messages.end(),
                                  [&](const Hdf5Message& one) { return one.type == type; });
  return found == messages.end() ? nullptr : &*found;
}

Hdf5Object read_object(Hdf5File& file, std::uint64_t address) {
  Hdf5Object object{.address = address, .messages = {}};
  HeaderReader5(file, &object).read();
  return object;
}

}  // namespace openrnn::formats
