#include "formats/torch/pickle.h"

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/torch/pickle_machine.h"
#include "openrnn/base.h"

namespace openrnn::formats {

std::vector<PickleId> Pickle::items(const PickleNode& list, std::size_t most) const {
  std::vector<PickleId> found;
  each_item(list, [&](PickleId id) {
    found.push_back(id);
    return found.size() < most;
  });
  return found;
}

void Pickle::fail(std::uint32_t at, const std::string& what) const {
  throw FormatError(path, offset + at, what);
}

// ---- Names and calls: what is said of them is kept, nothing is done ----------------------------

bool PickleMachine::take_call(unsigned char op) {
  switch (op) {
    case 'c': {
      const std::string_view module = take_line();
      take_name(module, take_line());
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const PickleNode name = node(pop()), module = node(pop());
      if (name.kind != PickleKind::kString || module.kind != PickleKind::kString) {
        fail("the pickle names something by what is no string, expected strings");
      }
      take_name(pickle_.text(module), pickle_.text(name));
      return true;
    }
    case 'Q': {  // BINPERSID
      const PickleId id = pop();
      push(add(PickleKind::kPersistent, id));
      return true;
    }
    case 'R':
      take_reduce();
      return true;
    case 0x81:
      take_new_object();
      return true;
    case 'b':
      take_build();
      return true;
    default:
      return false;
  }
}

void PickleMachine::take_name(std::string_view module, std::string_view name) {
  const std::optional<TorchName> known = find_torch_name(module, name);
  if (!known) {
    fail(message("the pickle names ", excerpt(module), ".", excerpt(name),
                 ", expected only names of tensors and plain containers: a state_dict, or a "
                 "dictionary of such"));
  }
  pickle_.names.push_back(*known);
  push(add(PickleKind::kName, pickle_.names.size() - 1));
}

void PickleMachine::take_reduce() {
  const PickleId arguments = pop(), callee = pop();
  if (node(callee).kind != PickleKind::kName || node(arguments).kind != PickleKind::kList) {
    fail("the pickle calls something without a name, expected a name and a tuple");
  }
  const std::vector<PickleId> first = pickle_.items(node(arguments), 1);
  switch (pickle_.name(node(callee)).role) {
    case NameRole::kTensor:
    case NameRole::kTensorOfDtype:
    case NameRole::kParameter:
      push(add(PickleKind::kCall, callee | std::uint64_t{arguments} << 32));
      return;
    case NameRole::kFirst:
      if (first.empty()) fail("a call has no arguments, expected one");
      push(first[0]);
      return;
    case NameRole::kMapping: {
      push(add_list(PickleKind::kDict));
      if (first.empty()) return;
      if (node(first[0]).kind != PickleKind::kList) break;
      // A list of pairs, as Python 2 wrote it.
      std::vector<PickleId> pairs;
      pickle_.each_item(node(first[0]), [&](PickleId pair) {
        if (node(pair).kind != PickleKind::kList) fail("an item is no pair, expected pairs");
        const std::vector<PickleId> two = pickle_.items(node(pair), 3);
        if (two.size() != 2) fail("an item is no pair, expected pairs");
        pairs.insert(pairs.end(), two.begin(), two.end());
        return true;
      });
      append_pairs(stack_.back(), pairs);
      return;
    }
    case NameRole::kStorage:
    case NameRole::kUntypedStorage:
    case NameRole::kDtype:
    case NameRole::kClass:
      break;
  }
  fail("the pickle makes something by a call, expected tensors and plain containers");
}

void PickleMachine::take_new_object() {
  pop();  // the arguments of a class that is not made here
  const PickleNode callee = node(pop());
  const bool known = callee.kind == PickleKind::kName;
  if (known && pickle_.name(callee).role == NameRole::kClass) {
    push(add(PickleKind::kObject, none_));
  } else if (known && pickle_.name(callee).role == NameRole::kMapping) {
    push(add_list(PickleKind::kDict));
  } else {
    fail("the pickle makes an object of no known class, expected tensors and plain containers");
  }
}

// A state_dict has attributes besides its items (_metadata), which are of no interest.
void PickleMachine::take_build() {
  const PickleId state = pop();
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    fail("the pickle sets the state of nothing, expected an object");
  }
  PickleNode& object = pickle_.nodes[stack_.back()];
  if (object.kind == PickleKind::kObject) {
    object.set(state, 0);
  } else if (object.kind != PickleKind::kDict) {
    fail("the pickle sets the state of what is no object, expected a dictionary");
  }
}

std::optional<Pickle> parse_pickle(const std::string& path, std::uint64_t offset,
                                   std::string_view bytes) {
  return PickleMachine(path, offset, bytes).run();
}

}  // namespace openrnn::formats
