#include "checkpoint/network_names.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/message.h"
#include "openrnn/saveables.h"

namespace openrnn::checkpoint {
namespace {

// Cells of one name.
struct Family {
  RnnMode mode = RnnMode::kLstm;
  bool reset_after = true;
  bool layer_norm = false;  // LayerNormBasicLSTMCell

  std::string_view name() const {
    RnnSpec spec{.mode = mode, .reset_after = reset_after};
    if (layer_norm) spec.layer_norm = LayerNorm::kGates;
    if (layer_norm) spec.layer_norm_cell = LayerNormCell::kCarried;
    return tf_cell_name(spec);
  }
};
constexpr Family kFamilies[] = {{RnnMode::kLstm},
                                {RnnMode::kLstm, true, true},
                                {RnnMode::kGru},
                                {RnnMode::kGru, false},
                                {RnnMode::kRnnTanh}};

struct Parsed {
  std::string scope;
  Direction direction = Direction::kUnidirectional;
  Family family;
  std::int64_t layer = 0;
};

// Cuts `tail` off the end of `text`, together with the slash before it.
bool cut_tail(std::string_view& text, std::string_view tail) {
  if (text == tail) {
    text = {};
    return true;
  }
  if (!text.ends_with(tail) || text[text.size() - tail.size() - 1] != '/') return false;
  text.remove_suffix(tail.size() + 1);
  return true;
}

// Cuts 'cell_N' off the end.
std::optional<std::int64_t> cut_cell(std::string_view& text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return {};
  std::string_view last = text.substr(slash + 1);
  if (!last.starts_with("cell_")) return {};
  last.remove_prefix(5);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), number);
  constexpr std::int64_t kMost =
      1 << 20;  // more layers than any network; layer + 1 must not overflow
  const bool whole = error == std::errc() && end == last.data() + last.size();
  if (!whole || number < 0 || number > kMost) return {};
  text = text.substr(0, slash);
  return number;
}

std::vector<std::string_view> suffixes(const Family& family) {
  if (!family.reset_after) {
    return {"gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"};
  }
  if (family.mode == RnnMode::kGru) {
    return {"gates/kernel",
            "gates/bias",
            "candidate/input_projection/kernel",
            "candidate/input_projection/bias",
            "candidate/hidden_projection/kernel",
            "candidate/hidden_projection/bias",
            "projection/kernel",
            "kernel_norm/gamma",
            "recurrent_norm/gamma"};
  }
  if (family.mode == RnnMode::kLstm) {
    return {"projection/kernel",
            "kernel",
            "bias",
            "w_f_diag",
            "w_i_diag",
            "w_o_diag",
            "kernel_norm/gamma",
            "recurrent_norm/gamma",
            "state_norm/gamma",
            "state_norm/beta",
            "input/gamma",
            "input/beta",
            "transform/gamma",
            "transform/beta",
            "forget/gamma",
            "forget/beta",
            "output/gamma",
            "output/beta",
            "state/gamma",
            "state/beta"};
  }
  return {"projection/kernel", "kernel", "bias"};
}

std::optional<Parsed> parse_head(std::string_view head, const Family& family) {
  Parsed parsed;
  parsed.family = family;
  if (cut_tail(head, "bidirectional_rnn/fw") || cut_tail(head, "bidirectional_rnn/bw")) {
    const std::optional<std::int64_t> layer = cut_cell(head);
    if (!layer || !cut_tail(head, "stack_bidirectional_rnn")) return {};
    parsed.direction = Direction::kBidirectional;
    parsed.layer = *layer;
  } else {
    const std::optional<std::int64_t> layer = cut_cell(head);
    if (!layer || !cut_tail(head, "rnn/multi_rnn_cell")) return {};
    parsed.layer = *layer;
  }
  parsed.scope = head;
  return parsed;
}

std::optional<Parsed> parse(const std::string& name) {
  for (const Family& family : kFamilies) {
    for (const std::string_view suffix : suffixes(family)) {
      std::string_view head = name;
      if (!cut_tail(head, suffix) || !cut_tail(head, family.name())) continue;
      return parse_head(head, family);
    }
  }
  return {};
}

}  // namespace

std::string_view Candidate::cell_name() const {
  return Family{mode, reset_after, layer_norm}.name();
}

std::string Candidate::cell_prefix(std::int64_t layer) const {
  return message(scope, scope.empty() ? "" : "/", tf_cell_scope(direction, layer, 0), "/",
                 cell_name(), "/");
}

const TensorInfo* Candidate::find(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : found->second;
}

std::vector<Candidate> find_candidates(const TensorBundleReader& reader) {
  std::map<std::tuple<std::string, Direction, RnnMode, bool, bool>, Candidate> groups;
  for (const TensorInfo& info : reader.tensors()) {
    const std::optional<Parsed> parsed = parse(info.name);
    if (!parsed) continue;
    const Family& family = parsed->family;
    Candidate& group = groups[{parsed->scope, parsed->direction, family.mode, !family.reset_after,
                               family.layer_norm}];
    group.scope = parsed->scope;
    group.direction = parsed->direction;
    group.mode = family.mode;
    group.reset_after = family.reset_after;
    group.layer_norm = family.layer_norm;
    group.num_layers = std::max(group.num_layers, parsed->layer + 1);
    group.tensors[info.name] = &info;
  }
  std::vector<Candidate> candidates;
  for (auto& entry : groups) candidates.push_back(std::move(entry.second));
  return candidates;
}

}  // namespace openrnn::checkpoint
