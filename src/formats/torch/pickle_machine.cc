#include "formats/torch/pickle_machine.h"

#include <algorithm>
#include <cstring>

#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

// Offsets in a pickle have 32 bits here.
constexpr std::size_t kMaxPickle = std::size_t{1} << 31;

}  // namespace

PickleMachine::PickleMachine(const std::string& path, std::uint64_t offset,
                             std::string_view bytes) {
  pickle_.path = path;
  pickle_.offset = offset;
  pickle_.bytes = bytes.substr(0, kMaxPickle);
  none_ = add(PickleKind::kNone, 0);
  false_ = add(PickleKind::kBool, 0);
  true_ = add(PickleKind::kBool, 1);
}

std::optional<Pickle> PickleMachine::run() {
  try {
    for (;;) {
      op_at_ = at_;
      const auto op = fixed<unsigned char>();
      if (op == '.') break;
      if (take_plain(op) || take_text(op) || take_container(op) || take_items(op) ||
          take_stack(op) || take_call(op)) {
        continue;
      }
      constexpr const char* kHex = "0123456789abcdef";
      fail(message("the pickle has opcode 0x", kHex[op >> 4], kHex[op & 15],
                   ", expected one that tensors and plain containers need"));
    }
  } catch (const Cut&) {
    if (pickle_.bytes.size() == kMaxPickle) {
      fail(message("the pickle is longer than ", kMaxPickle, " bytes, expected fewer"));
    }
    return std::nullopt;
  }
  if (!marks_.empty() || stack_.size() != 1) {
    fail(message("the pickle ends with ", stack_.size(), " values, expected one"));
  }
  pickle_.root = stack_[0];
  pickle_.bytes = pickle_.bytes.substr(0, at_);
  return std::move(pickle_);
}

void PickleMachine::fail(const std::string& what) const {
  pickle_.fail(static_cast<std::uint32_t>(op_at_), what);
}

std::string_view PickleMachine::take(std::uint64_t size) {
  if (size > pickle_.bytes.size() - at_) throw Cut();
  const std::string_view taken = pickle_.bytes.substr(at_, static_cast<std::size_t>(size));
  at_ += taken.size();
  return taken;
}

std::string_view PickleMachine::take_line() {
  const std::size_t end = pickle_.bytes.find('\n', at_);
  if (end == std::string_view::npos) throw Cut();
  const std::string_view line = take(end - at_);
  ++at_;
  return line;
}

// An honest pickle has two bytes or more for a value of its own, and one for its place in a list:
// this bounds the memory, whatever is repeated by the memo.
PickleId PickleMachine::add(PickleKind kind, std::uint64_t bits) {
  constexpr std::size_t kSome = 64;
  if (pickle_.nodes.size() > pickle_.bytes.size() / 2 + kSome) {
    fail("the pickle has more values than bytes for them, expected fewer");
  }
  pickle_.nodes.push_back({kind, static_cast<std::uint32_t>(op_at_), bits});
  return static_cast<PickleId>(pickle_.nodes.size() - 1);
}

PickleId PickleMachine::add_list(PickleKind kind) {
  return add(kind, kNoNode | std::uint64_t{kNoNode} << 32);
}

void PickleMachine::push_text(PickleKind kind, std::string_view text) {
  const auto first = static_cast<std::uint32_t>(text.data() - pickle_.bytes.data());
  push(add(kind, first | std::uint64_t{text.size()} << 32));
}

void PickleMachine::push_integer(std::string_view bytes) {
  if (bytes.size() > sizeof(std::int64_t)) return push_text(PickleKind::kBigInt, bytes);
  // The sign is that of the highest byte.
  std::int64_t value = !bytes.empty() && static_cast<signed char>(bytes.back()) < 0 ? -1 : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  push(add(PickleKind::kInt, static_cast<std::uint64_t>(value)));
}

PickleId PickleMachine::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    fail("the pickle takes a value from an empty stack, expected one there");
  }
  const PickleId id = stack_.back();
  stack_.pop_back();
  return id;
}

std::vector<PickleId> PickleMachine::pop_mark() {
  if (marks_.empty()) fail("the pickle has no mark, expected one");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleId> above(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return above;
}

PickleId PickleMachine::top_of(PickleKind kind) const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()) || node(stack_.back()).kind != kind) {
    fail(message("the pickle adds to what is no ",
                 kind == PickleKind::kDict ? "dictionary" : "list", ", expected one"));
  }
  return stack_.back();
}

void PickleMachine::append(PickleId list, PickleId value) {
  const auto cell = static_cast<std::uint32_t>(pickle_.cells.size());
  if (cell > pickle_.bytes.size()) {
    fail("the pickle has more items than bytes, expected fewer");
  }
  pickle_.cells.push_back({value, kNoNode});
  PickleNode& node = pickle_.nodes[list];
  if (node.first() == kNoNode) {
    node.set(cell, cell);
  } else {
    pickle_.cells[node.second()].next = cell;
    node.set(node.first(), cell);
  }
}

void PickleMachine::append_pairs(PickleId dict, const std::vector<PickleId>& items) {
  if (items.size() % 2) fail("a dictionary has a key without a value, expected pairs");
  for (const PickleId id : items) append(dict, id);
}

// An index lies below the number of bytes, as each entry takes some: so the memo stays small.
void PickleMachine::put(std::uint64_t index) {
  if (index >= pickle_.bytes.size()) {
    fail(message("the memo has ", index, " entries, expected fewer than bytes"));
  }
  if (stack_.empty()) fail("the pickle remembers a value of an empty stack, expected one there");
  if (memo_.size() <= index) memo_.resize(static_cast<std::size_t>(index) + 1, kNoNode);
  memo_[static_cast<std::size_t>(index)] = stack_.back();
}

void PickleMachine::get(std::uint64_t index) {
  if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == kNoNode) {
    fail(message("the memo has no entry ", index, ", expected one"));
  }
  push(memo_[static_cast<std::size_t>(index)]);
}

}  // namespace openrnn::formats
