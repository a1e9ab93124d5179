// Changes pickles by their opcodes: what follows stays where the machine looks for it.
#pragma once

#include <optional>
#include <vector>

#include "chance.h"

namespace openrnn::fuzz {

struct PickleOp {
  unsigned char code = 0;
  /// Without the length in front of it.
  std::string argument;
};

/// How the argument of an opcode is written.
struct PickleForm {
  enum Kind { kNone, kFixed, kCounted, kLines } kind = kNone;
  /// Bytes of it, or of the length in front of it, or lines.
  std::size_t size = 0;
};

inline PickleForm pickle_form(unsigned char code) {
  const auto is_one_of = [&](std::string_view codes) {
    return codes.find(static_cast<char>(code)) != std::string_view::npos;
  };
  if (is_one_of("\x80Kqh\x82")) return {PickleForm::kFixed, 1};
  if (is_one_of("M\x83")) return {PickleForm::kFixed, 2};
  if (is_one_of("Jrj\x84")) return {PickleForm::kFixed, 4};
  if (is_one_of("G\x95")) return {PickleForm::kFixed, 8};
  if (is_one_of("\x8a\x8cUC")) return {PickleForm::kCounted, 1};
  if (is_one_of("\x8bXTB")) return {PickleForm::kCounted, 4};
  if (is_one_of("\x8d\x8e\x96")) return {PickleForm::kCounted, 8};
  if (is_one_of("ci")) return {PickleForm::kLines, 2};
  if (is_one_of("FILSVPpg")) return {PickleForm::kLines, 1};
  return {};
}

/// The opcodes up to STOP, which is one of them; nothing if the bytes end before.
inline std::optional<std::vector<PickleOp>> parse_pickle_ops(std::string_view* rest) {
  std::vector<PickleOp> ops;
  std::string_view in = *rest;
  while (!in.empty()) {
    PickleOp op{static_cast<unsigned char>(in[0]), {}};
    in.remove_prefix(1);
    const PickleForm form = pickle_form(op.code);
    std::uint64_t size = form.kind == PickleForm::kNone ? 0 : form.size;
    if (form.kind == PickleForm::kCounted) {
      if (in.size() < size) return std::nullopt;
      std::uint64_t count = 0;
      std::memcpy(&count, in.data(), size);
      in.remove_prefix(size);
      size = count;
    } else if (form.kind == PickleForm::kLines) {
      std::size_t end = 0;
      for (std::size_t line = 0; line < form.size; ++line) {
        end = in.find('\n', end);
        if (end == std::string_view::npos) return std::nullopt;
        ++end;
      }
      size = end;
    }
    if (in.size() < size) return std::nullopt;
    op.argument = in.substr(0, static_cast<std::size_t>(size));
    in.remove_prefix(static_cast<std::size_t>(size));
    ops.push_back(std::move(op));
    if (ops.back().code == '.') {
      *rest = in;
      return ops;
    }
  }
  return std::nullopt;
}

inline std::string pickle_of(const std::vector<PickleOp>& ops) {
  std::string bytes;
  for (const PickleOp& op : ops) {
    bytes += static_cast<char>(op.code);
    const PickleForm form = pickle_form(op.code);
    if (form.kind == PickleForm::kCounted) {
      const std::uint64_t count = op.argument.size();
      bytes.append(reinterpret_cast<const char*>(&count), form.size);
    }
    bytes += op.argument;
  }
  return bytes;
}

class PickleMutator {
 public:
  PickleMutator(std::vector<PickleOp>* ops, Chance& chance) : ops_(*ops), chance_(chance) {}

  void change() {
    for (std::size_t left = 1 + chance_.below(3); left > 0; --left) {
      if (!ops_.empty()) change_one(chance_.below(ops_.size()));
    }
  }

 private:
  void change_one(std::size_t at) {
    const auto here = ops_.begin() + static_cast<std::ptrdiff_t>(at);
    switch (chance_.below(9)) {
      case 0:
        ops_.erase(here);
        break;
      case 1:
        ops_.insert(here, PickleOp(*here));
        break;
      case 2:
        std::swap(*here, chance_.pick(ops_));
        break;
      case 3:
        copy_run(at);
        break;
      case 4:
        ops_.insert(here, new_op());
        break;
      default:
        change_argument(&ops_[next_with_argument(at)]);
    }
  }

  // Some opcodes once more, elsewhere, perhaps often.
  void copy_run(std::size_t at) {
    const std::size_t count = 1 + chance_.below(std::min<std::size_t>(ops_.size() - at, 12));
    const std::size_t times = chance_.one_in(16) ? 100 : 1;
    const auto first = ops_.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<PickleOp> run(first, first + static_cast<std::ptrdiff_t>(count));
    const std::size_t to = chance_.below(ops_.size());
    for (std::size_t i = 0; i < times; ++i) {
      ops_.insert(ops_.begin() + static_cast<std::ptrdiff_t>(to), run.begin(), run.end());
    }
  }

  PickleOp new_op() {
    static const PickleOp kOps[] = {{'(', {}},
                                    {')', {}},
                                    {'}', {}},
                                    {']', {}},
                                    {'t', {}},
                                    {'R', {}},
                                    {'b', {}},
                                    {'u', {}},
                                    {'s', {}},
                                    {'e', {}},
                                    {'a', {}},
                                    {'0', {}},
                                    {'1', {}},
                                    {'2', {}},
                                    {'N', {}},
                                    {'Q', {}},
                                    {'d', {}},
                                    {'l', {}},
                                    {0x85, {}},
                                    {0x86, {}},
                                    {0x87, {}},
                                    {0x88, {}},
                                    {0x94, {}},
                                    {0x8f, {}},
                                    {0x90, {}},
                                    {0x91, {}},
                                    {0x93, {}},
                                    {0x81, {}},
                                    {'K', "\x01"},
                                    {'h', "\x02"},
                                    {'q', "\x03"},
                                    {'X', "storage"},
                                    {'X', "weight_hh_l0"},
                                    {'X', "weight_ih_l0_reverse"},
                                    {'c', "torch._utils\n_rebuild_tensor_v2\n"},
                                    {'c', "torch._utils\n_rebuild_tensor_v3\n"},
                                    {'c', "torch._utils\n_rebuild_parameter\n"},
                                    {'c', "collections\nOrderedDict\n"},
                                    {'c', "torch\nHalfStorage\n"},
                                    {'c', "torch\nBFloat16Storage\n"},
                                    {'c', "torch\nBoolStorage\n"},
                                    {'c', "torch\nSize\n"},
                                    {'c', "_codecs\nencode\n"},
                                    {'c', "__torch__\nModule\n"},
                                    {'c', "posix\nsystem\n"}};
    return chance_.pick(kOps);
  }

  std::size_t next_with_argument(std::size_t at) const {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const std::size_t here = (at + i) % ops_.size();
      if (!ops_[here].argument.empty()) return here;
    }
    return at;
  }

  void change_argument(PickleOp* op) {
    const PickleForm form = pickle_form(op->code);
    if (form.kind == PickleForm::kFixed) {
      std::uint64_t value = 0;
      std::memcpy(&value, op->argument.data(), form.size);
      value = chance_.number(value);
      std::memcpy(op->argument.data(), &value, form.size);
    } else if (form.kind == PickleForm::kCounted && chance_.one_in(2)) {
      // A name or key that the pickle has elsewhere.
      const PickleOp& other = chance_.pick(ops_);
      if (pickle_form(other.code).kind == PickleForm::kCounted) op->argument = other.argument;
    } else if (form.kind == PickleForm::kCounted) {
      chance_.change_bytes(&op->argument, 8);
    } else if (form.kind == PickleForm::kLines) {
      *op = new_op();
    }
  }

  std::vector<PickleOp>& ops_;
  Chance& chance_;
};

/// One pickle, or several one behind another with bytes behind them, as the old files of PyTorch.
inline bool mutate_pickle(std::string* bytes, Chance& chance) {
  std::string_view rest = *bytes;
  std::vector<std::vector<PickleOp>> pickles;
  while (rest.starts_with('\x80')) {
    std::optional<std::vector<PickleOp>> ops = parse_pickle_ops(&rest);
    if (!ops) break;
    pickles.push_back(std::move(*ops));
  }
  if (pickles.empty()) return false;
  std::string tail(rest);
  if (!tail.empty() && chance.one_in(6)) {
    chance.change_bytes(&tail);
  } else {
    PickleMutator(&chance.pick(pickles), chance).change();
  }
  bytes->clear();
  for (const std::vector<PickleOp>& ops : pickles) *bytes += pickle_of(ops);
  *bytes += tail;
  return true;
}

}  // namespace openrnn::fuzz
