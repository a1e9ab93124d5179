// The opcodes but for calls.
#include "base/message.h"
#include "formats/torch/pickle_machine.h"

namespace openrnn::formats {

// Numbers and constants.
bool PickleMachine::take_plain(unsigned char op) {
  switch (op) {
    case 0x80: {  // PROTO
      const auto version = fixed<std::uint8_t>();
      if (version < 2 || version > 5) {
        fail(message("the pickle is of protocol ", int{version}, ", expected 2 to 5"));
      }
      return true;
    }
    case 0x95:  // FRAME: a hint of how much to read
      fixed<std::uint64_t>();
      return true;
    case 'N':
      push(none_);
      return true;
    case 0x88:
      push(true_);
      return true;
    case 0x89:
      push(false_);
      return true;
    case 'J':
      push_integer(take(4));
      return true;
    case 'K':
      push(add(PickleKind::kInt, fixed<std::uint8_t>()));
      return true;
    case 'M':
      push(add(PickleKind::kInt, fixed<std::uint16_t>()));
      return true;
    case 0x8a:  // LONG1
      push_integer(take(fixed<std::uint8_t>()));
      return true;
    case 0x8b:  // LONG4
      push_integer(take(fixed<std::uint32_t>()));
      return true;
    case 'G':  // big-endian
      push(add(PickleKind::kFloat, __builtin_bswap64(fixed<std::uint64_t>())));
      return true;
    default:
      return false;
  }
}

bool PickleMachine::take_text(unsigned char op) {
  const bool is_bytes = op == 'B' || op == 'C' || op == 0x8e;
  std::uint64_t size = 0;
  switch (op) {
    case 'X':
    case 'T':  // a string of Python 2
    case 'B':
      size = fixed<std::uint32_t>();
      break;
    case 0x8c:
    case 'U':
    case 'C':
      size = fixed<std::uint8_t>();
      break;
    case 0x8d:
    case 0x8e:
      size = fixed<std::uint64_t>();
      break;
    default:
      return false;
  }
  push_text(is_bytes ? PickleKind::kBytes : PickleKind::kString, take(size));
  return true;
}

bool PickleMachine::take_container(unsigned char op) {
  std::vector<PickleId> items;
  switch (op) {
    case ']':
    case ')':
    case 0x8f:  // EMPTY_SET
      push(add_list(PickleKind::kList));
      return true;
    case '}':
      push(add_list(PickleKind::kDict));
      return true;
    case 0x87:
    case 0x86:
    case 0x85:
      for (int i = op - 0x84; i > 0; --i) items.insert(items.begin(), pop());
      break;
    case 't':
    case 'l':
    case 0x91:  // FROZENSET
      items = pop_mark();
      break;
    case 'd': {
      items = pop_mark();
      push(add_list(PickleKind::kDict));
      append_pairs(stack_.back(), items);
      return true;
    }
    default:
      return false;
  }
  push(add_list(PickleKind::kList));
  for (const PickleId id : items) append(stack_.back(), id);
  return true;
}

bool PickleMachine::take_items(unsigned char op) {
  switch (op) {
    case 'a': {
      const PickleId value = pop();
      append(top_of(PickleKind::kList), value);
      return true;
    }
    case 's': {
      const PickleId value = pop(), key = pop();
      append_pairs(top_of(PickleKind::kDict), {key, value});
      return true;
    }
    case 'e':
    case 0x90: {  // ADDITEMS
      const std::vector<PickleId> items = pop_mark();
      const PickleId list = top_of(PickleKind::kList);
      for (const PickleId id : items) append(list, id);
      return true;
    }
    case 'u': {
      const std::vector<PickleId> items = pop_mark();
      append_pairs(top_of(PickleKind::kDict), items);
      return true;
    }
    default:
      return false;
  }
}

// The stack itself, its marks and the memo.
bool PickleMachine::take_stack(unsigned char op) {
  switch (op) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':
      pop();
      return true;
    case '1':
      pop_mark();
      return true;
    case '2':
      push(pop());
      push(stack_.back());
      return true;
    case 'q':
      put(fixed<std::uint8_t>());
      return true;
    case 'r':
      put(fixed<std::uint32_t>());
      return true;
    case 0x94:  // MEMOIZE
      put(memo_.size());
      return true;
    case 'h':
      get(fixed<std::uint8_t>());
      return true;
    case 'j':
      get(fixed<std::uint32_t>());
      return true;
    default:
      return false;
  }
}

}  // namespace openrnn::formats
