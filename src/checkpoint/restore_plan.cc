#include "checkpoint/restore_plan.h"

#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "checkpoint/extras.h"
#include "checkpoint/network_names.h"

namespace openrnn::checkpoint {
namespace {

// What a file of compatible cells needs.
constexpr const char* kRawHint =
    "; a Saver over saveables alone takes a network from its canonical tensors";

}  // namespace

bool same_bits(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.size_bytes() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

Array RestorePlan::read_checked(const std::string& name, const Variable& variable) const {
  return read_fitting("Saver::restore", reader_, name, "tensor " + name, variable);
}

void RestorePlan::add_variable(const std::string& name, const Variable& variable) {
  if (!reader_.contains(name)) {
    missing_.push_back(name);
    return;
  }
  taken_.insert(name);
  assignments_.add(variable, read_checked(name, variable));
}

std::optional<Array> RestorePlan::raw_if_equal(const SaveableObject& saveable,
                                               const std::string& name,
                                               const std::vector<Array>& stored) const {
  if (!reader_.contains(name) || !fits(reader_.info(name), saveable.variable())) return {};
  Array raw = reader_.read(name);
  const std::vector<Array> of_raw = saveable.to_tensors(raw.view());
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (!same_bits(of_raw[i], stored[i])) return {};
  }
  return raw;
}

void RestorePlan::refuse_foreign(const SaveableObject& saveable) const {
  const std::vector<std::string> found = foreign_tensors(reader_, saveable);
  if (found.empty()) return;
  throw ArgumentError(message("[Saver::restore] ", reader_.prefix(), " holds ",
                              listed_excerpts(found), ", which ", saveable.name(),
                              " has not, expected the tensors of its own network alone: ",
                              listed_excerpts(saveable.spec_names())));
}

void RestorePlan::add_saveable(const SaveableObject& saveable, const std::string* raw) {
  const Variable& variable = saveable.variable();
  const bool has_raw = raw && reader_.contains(*raw);
  if (has_raw) taken_.insert(*raw);
  std::vector<std::string> absent;
  const std::vector<std::string> names = saveable.spec_names();
  for (const std::string& name : names) {
    (reader_.contains(name) ? (void)taken_.insert(name) : absent.push_back(name));
  }
  refuse_foreign(saveable);
  if (absent.size() == names.size() && has_raw) {
    assignments_.add(variable, read_checked(*raw, variable));
    return;
  }
  if (raw && !has_raw) {
    absent.insert(absent.begin(), *raw);
    raw_missing_ = true;
  }
  if (!absent.empty()) {
    missing_.insert(missing_.end(), absent.begin(), absent.end());
    return;
  }
  std::vector<Array> stored;
  for (const std::string& name : names) stored.push_back(reader_.read(name));
  // Checks shapes and dtypes, also where the raw buffer will win.
  const Array from_canonical = saveable.from_tensors(stored);
  const std::optional<Array> same = has_raw ? raw_if_equal(saveable, *raw, stored) : std::nullopt;
  assignments_.add(variable, same ? *same : from_canonical);
}

std::vector<std::string> RestorePlan::unexpected() const {
  std::vector<std::string> names;
  for (const TensorInfo& info : reader_.tensors()) {
    if (!taken_.count(info.name) && !info.name.starts_with(kExtrasPrefix)) {
      names.push_back(info.name);
    }
  }
  return names;
}

void RestorePlan::check_names(bool refuse_unexpected) const {
  const std::vector<std::string> left = unexpected();
  if (!missing_.empty()) {
    throw ArgumentError(
        message("[Saver::restore] ", reader_.prefix(), " lacks ", missing_.size(),
                " of the tensors that the model expects: ", listed_excerpts(missing_),
                left.empty() ? "" : "; not expected but there: ", listed_excerpts(left),
                raw_missing_ ? kRawHint : ""));
  }
  if (refuse_unexpected && !left.empty()) {
    throw ArgumentError(
        message("[Saver::restore] ", reader_.prefix(), " holds ", left.size(),
                " tensors that the model has no place for: ", listed_excerpts(left)));
  }
}

}  // namespace openrnn::checkpoint
