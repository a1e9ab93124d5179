#include "train/group/overlap.h"

#include <algorithm>
#include <cstring>

#include "openrnn/runtime.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

// Below it a message is mostly latency; above it the first one waits for more than it need.
constexpr std::size_t kMessageBytes = std::size_t{1} << 20;

DeviceArray filled(const Variable& like, double value) {
  return DeviceArray::full(like.device(), compute_dtype(like.dtype()), like.shape(), value);
}

}  // namespace

Overlap::~Overlap() { stop(); }

DType Overlap::dtype_of(std::int64_t variable) const {
  return compute_dtype(variables_[static_cast<std::size_t>(variable)].dtype());
}

void Overlap::begin(const std::vector<Variable>& variables) {
  const bool same =
      std::equal(variables.begin(), variables.end(), variables_.begin(), variables_.end(),
                 [](const Variable& a, const Variable& b) { return a.leaf_id() == b.leaf_id(); });
  if (!same) {
    variables_ = variables;
    index_.clear();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      index_.emplace(variables[i].leaf_id(), static_cast<std::int64_t>(i));
    }
    plan_.clear();
    messages_.clear();
  }
  earlier_ = nullptr;
  leaf_.clear();
  ran_ = false;
  next_ = 0;
  heard_.clear();
  complete_.assign(plan_.size(), false);
  places_.assign(variables.size(), nullptr);
  kept_.assign(variables.size(), nullptr);
}

void Overlap::ready(std::uint64_t leaf, DeviceArray& gradient, std::int64_t begin,
                    std::int64_t end) noexcept {
  const auto found = index_.find(leaf);
  if (found == index_.end() || begin == end) return;
  const Range range{found->second, begin, end};
  // Others are converted when the pass is over, or still being computed.
  if (gradient.dtype() != dtype_of(range.variable) || gradient.device().engine()) return;
  const std::lock_guard lock(mutex_);
  if (plan_.empty()) {
    heard_.push_back(range);
    return;
  }
  // Once: the thread reads it without the lock from then on.
  if (void*& place = places_[static_cast<std::size_t>(range.variable)]; !place) {
    place = gradient.mutable_data();
    kept_[static_cast<std::size_t>(range.variable)] = gradient.share();
  }
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    if (range.holds(plan_[i])) complete_[i] = true;
  }
  changed_.notify_one();
}

bool Overlap::complete(const Message& message) const {
  for (std::size_t i = message.first; i < message.last; ++i) {
    if (!complete_[i]) return false;
  }
  return true;
}

void Overlap::work() noexcept {
  try {
    for (; next_ < messages_.size(); ++next_) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || complete(messages_[next_]); });
        if (stopping_) return;
      }
      send(messages_[next_], Adding::kAlone);
    }
  } catch (...) {
    error_ = std::current_exception();
  }
}

void Overlap::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  kept_.clear();
}

void Overlap::send(const Message& message, Adding adding) {
  std::vector<SharedPart> parts;
  for (std::size_t i = message.first; i < message.last; ++i) {
    const Range& range = plan_[i];
    const auto place = static_cast<std::size_t>(range.variable);
    const bool early = adding == Adding::kAlone;
    void* const elements = early ? places_[place] : leaf_[place].mutable_data();
    const bool here = early || present_[place];
    if (here) earlier_->add_to_last(place, range.begin, range.end, elements, adding);
    const std::size_t width = dtype_size(message.dtype);
    parts.push_back(
        {&variables_[place].device(),
         static_cast<std::byte*>(elements) + static_cast<std::size_t>(range.begin) * width,
         static_cast<std::size_t>(range.end - range.begin) * width, here});
  }
  group_.reduce_early(message.dtype, parts, adding);
}

void Overlap::last_part(const GradientSum& sum, Optimizer& optimizer, const GradientTape& tape,
                        const Tensor& loss, double share) {
  earlier_ = sum.sum_.get();
  stopping_ = false;
  ran_ = true;
  // However the part ends, the thread does before the group is used again.
  struct Stop {
    Overlap& overlap;
    ~Stop() { overlap.stop(); }
  };
  {
    const Stop at_end{*this};
    if (!messages_.empty()) thread_ = std::thread([this] { work(); });
    const graph::Listening listening(this);
    leaf_ = part_values(optimizer, tape, loss, variables_, share);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    if (!places_[i] || leaf_[i].data() == places_[i]) continue;
    throw EngineError(message("Fit", "the gradient of '", variables_[i].name(),
                              "' was moved while it was being sent, expected it to stay"));
  }
}

// Afterwards leaf_ has an array wherever this rank has a gradient, and the loss.
void Overlap::complete_leaf(bool any) {
  leaf_.resize(variables_.size() + 1);
  present_.assign(variables_.size(), false);
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    DeviceArray& each = leaf_[i];
    // x + -0.0 is x for every x: as if the last part had none.
    if (each.empty() && earlier_->has(i)) each = filled(variables_[i], -0.0);
    present_[i] = !each.empty();
    if (present_[i]) each.make_unique_owner();
  }
  DeviceArray& loss = leaf_.back();
  if (loss.empty() && any) {
    // The losses of the parts before are on the device of the model.
    const Device& where = variables_.empty() ? device("cpu") : variables_[0].device();
    loss = DeviceArray::full(where, DType::kFloat64, {}, -0.0);
  }
  if (!any) return;
  loss.make_unique_owner();
  earlier_->add_to_last(variables_.size(), 0, 1, loss.mutable_data(), Adding::kByPool);
}

GradientSum::Step Overlap::finish(const GradientSum& sum, bool any) {
  earlier_ = sum.sum_.get();
  complete_leaf(any);
  std::vector<DeviceArray> early(variables_.size());
  std::vector<bool> planned(variables_.size(), false);
  for (const Range& range : plan_) {
    const auto i = static_cast<std::size_t>(range.variable);
    planned[i] = true;
    if (leaf_[i].empty()) leaf_[i] = filled(variables_[i], 0.0);
  }
  for (; next_ < messages_.size(); ++next_) send(messages_[next_], Adding::kByPool);
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    if (planned[i]) {
      early[i] = leaf_[i];
      if (!present_[i]) leaf_[i] = DeviceArray();
    } else if (present_[i]) {
      earlier_->add_to_last(i, 0, leaf_[i].size(), leaf_[i].mutable_data(), Adding::kByPool);
    }
  }
  std::optional<GradientSum::Step> own;
  if (any) own = step_of(std::move(leaf_));
  GradientSum::Step whole = group_.sum(std::move(own), variables_, std::move(early));
  if (plan_.empty()) make_plan(whole.gradients);
  return whole;
}

// What came first, first; each element once, and at the end what did not come.
std::vector<Overlap::Range> Overlap::order_heard(const std::vector<DeviceArray>& gradients) const {
  std::vector<Range> order;
  const auto add = [&](const Range& range) {
    const bool known = std::any_of(order.begin(), order.end(),
                                   [&](const Range& each) { return each.meets(range); });
    if (!known && range.begin < range.end) order.push_back(range);
  };
  for (const Range& each : heard_) add(each);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].empty()) continue;
    const auto variable = static_cast<std::int64_t>(i);
    std::vector<Range> of_it;
    std::copy_if(order.begin(), order.end(), std::back_inserter(of_it),
                 [&](const Range& each) { return each.variable == variable; });
    of_it.push_back({variable, gradients[i].size(), gradients[i].size()});
    std::sort(of_it.begin(), of_it.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::int64_t end = 0;
    for (const Range& each : of_it) {
      add({variable, end, each.begin});
      end = each.end;
    }
  }
  return order;
}

void Overlap::make_plan(const std::vector<DeviceArray>& gradients) {
  std::string text;
  if (group_.first() && ran_) {
    const std::vector<Range> order = order_heard(gradients);
    text.resize(order.size() * sizeof(Range));
    std::memcpy(text.data(), order.data(), text.size());
  }
  text = group_.text_of_first(text);
  plan_.resize(text.size() / sizeof(Range));
  std::memcpy(plan_.data(), text.data(), text.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const DType dtype = dtype_of(plan_[i].variable);
    if (messages_.empty() || bytes >= kMessageBytes || messages_.back().dtype != dtype) {
      messages_.push_back({i, i, dtype});
      bytes = 0;
    }
    messages_.back().last = i + 1;
    bytes += static_cast<std::size_t>(plan_[i].end - plan_[i].begin) * dtype_size(dtype);
  }
}

}  // namespace openrnn::train
