#include "checkpoint/network_names.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "base/message.h"
#include "openrnn/saveables.h"
#include "spec/tensorflow.h"

namespace openrnn::checkpoint {
namespace {

// A network for each name that a cell may have, in the order in which their candidates are listed.
const std::vector<RnnSpec>& families() {
  static const std::vector<RnnSpec> all = [] {
    const auto lstm = [](LayerNorm norm, LayerNormCell cell) {
      return RnnSpec{.layer_norm = norm, .layer_norm_cell = cell};
    };
    RnnSpec basic = lstm(LayerNorm::kGates, LayerNormCell::kCarried);
    basic.layer_norm_epsilon = spec::layer_norm_basic_epsilon(basic.dtype);
    return std::vector<RnnSpec>{{.mode = RnnMode::kLstm},
                                basic,
                                lstm(LayerNorm::kProducts, LayerNormCell::kNone),
                                lstm(LayerNorm::kProducts, LayerNormCell::kOutput),
                                lstm(LayerNorm::kProducts, LayerNormCell::kCarried),
                                {.mode = RnnMode::kGru},
                                {.mode = RnnMode::kGru, .layer_norm = LayerNorm::kProducts},
                                {.mode = RnnMode::kGru, .layer_norm = LayerNorm::kSplitProducts},
                                {.mode = RnnMode::kGru, .reset_after = false},
                                {.mode = RnnMode::kRnnTanh}};
  }();
  return all;
}

struct Parsed {
  std::string scope;
  Direction direction = Direction::kUnidirectional;
  std::size_t family = 0;
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

std::vector<std::string_view> suffixes(const RnnSpec& family) {
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

std::optional<Parsed> parse_head(std::string_view head, std::size_t family) {
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
  for (std::size_t i = 0; i < families().size(); ++i) {
    const RnnSpec& family = families()[i];
    for (const std::string_view suffix : suffixes(family)) {
      std::string_view head = name;
      if (!cut_tail(head, suffix) || !cut_tail(head, tf_cell_name(family))) continue;
      return parse_head(head, i);
    }
  }
  return {};
}

}  // namespace

std::string_view Candidate::cell_name() const { return tf_cell_name(form); }

std::string Candidate::cell_prefix(std::int64_t layer) const {
  return message(scope, scope.empty() ? "" : "/", tf_cell_scope(direction, layer, 0), "/",
                 cell_name(), "/");
}

const TensorInfo* Candidate::find(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : found->second;
}

std::vector<std::string> foreign_tensors(const TensorBundleReader& reader,
                                         const SaveableObject& saveable) {
  const std::vector<std::string> names = saveable.spec_names();
  const std::set<std::string> own(names.begin(), names.end());
  std::optional<Parsed> first;
  std::int64_t num_layers = 0;
  for (const std::string& name : names) {
    const std::optional<Parsed> parsed = parse(name);
    if (!parsed) return {};
    if (!first) first = parsed;
    num_layers = std::max(num_layers, parsed->layer + 1);
  }
  if (!first) return {};
  const bool has_own =
      std::ranges::any_of(own, [&](const std::string& name) { return reader.contains(name); });
  std::vector<std::string> found;
  for (const TensorInfo& info : reader.tensors()) {
    const std::optional<Parsed> parsed = own.contains(info.name) ? std::nullopt : parse(info.name);
    if (!parsed || parsed->scope != first->scope || parsed->direction != first->direction) continue;
    if (parsed->layer >= num_layers) continue;
    const bool same_cell = parsed->family == first->family;
    const bool same_mode = families()[parsed->family].mode == families()[first->family].mode;
    if (same_cell || (same_mode && !has_own)) found.push_back(info.name);
  }
  return found;
}

std::vector<Candidate> find_candidates(const TensorBundleReader& reader) {
  std::map<std::tuple<std::string, Direction, std::size_t>, Candidate> groups;
  for (const TensorInfo& info : reader.tensors()) {
    const std::optional<Parsed> parsed = parse(info.name);
    if (!parsed) continue;
    Candidate& group = groups[{parsed->scope, parsed->direction, parsed->family}];
    group.scope = parsed->scope;
    group.direction = parsed->direction;
    group.form = families()[parsed->family];
    group.num_layers = std::max(group.num_layers, parsed->layer + 1);
    group.tensors[info.name] = &info;
  }
  std::vector<Candidate> candidates;
  for (auto& entry : groups) candidates.push_back(std::move(entry.second));
  return candidates;
}

}  // namespace openrnn::checkpoint
