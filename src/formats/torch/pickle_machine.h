// The stack machine of pickles, of which it knows the opcodes that tensors and containers need.
#pragma once

#include <cstring>

#include "formats/torch/pickle.h"

namespace openrnn::formats {

class PickleMachine {
 public:
  PickleMachine(const std::string& path, std::uint64_t offset, std::string_view bytes);
  /// As parse_pickle.
  std::optional<Pickle> run();

 private:
  /// Thrown where the bytes end too early.
  struct Cut {};

  // One of these takes the opcode; the others return false.
  bool take_plain(unsigned char op);
  bool take_text(unsigned char op);
  bool take_container(unsigned char op);
  bool take_items(unsigned char op);
  bool take_stack(unsigned char op);
  bool take_call(unsigned char op);

  void take_name(std::string_view module, std::string_view name);
  void take_reduce();
  void take_new_object();
  void take_build();

  std::string_view take(std::uint64_t size);
  std::string_view take_line();
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  PickleId add(PickleKind kind, std::uint64_t bits);
  PickleId add_list(PickleKind kind);
  void push(PickleId id) { stack_.push_back(id); }
  void push_text(PickleKind kind, std::string_view text);
  void push_integer(std::string_view little_endian);
  PickleId pop();
  /// The values above the last mark, which goes.
  std::vector<PickleId> pop_mark();
  void append(PickleId list, PickleId value);
  void append_pairs(PickleId dict, const std::vector<PickleId>& items);
  void put(std::uint64_t index);
  void get(std::uint64_t index);
  /// The container at the top of the stack, of this kind.
  PickleId top_of(PickleKind kind) const;
  const PickleNode& node(PickleId id) const { return pickle_.nodes[id]; }
  [[noreturn]] void fail(const std::string& what) const;

  Pickle pickle_;
  /// Of the next byte, and of the opcode.
  std::size_t at_ = 0, op_at_ = 0;
  std::vector<PickleId> stack_, memo_;
  std::vector<std::size_t> marks_;
  PickleId none_ = kNoNode, true_ = kNoNode, false_ = kNoNode;
};

}  // namespace openrnn::formats
