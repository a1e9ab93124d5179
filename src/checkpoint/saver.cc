#include <algorithm>
#include <filesystem>
#include <set>

#include "base/message.h"
#include "checkpoint/extras.h"
#include "checkpoint/restore_plan.h"

namespace openrnn {
namespace {

// Which tensors a file will hold; throws before anything is written.
class TensorNames {
 public:
  void add(const std::string& name, const std::string& owner) {
    const auto [at, fresh] = owners_.try_emplace(name, owner);
    if (fresh) return;
    throw ArgumentError(message("[Saver::save] two tensors have the name ", name, ", of ",
                                at->second, " and of ", owner,
                                ", expected each once: layers that were built explicitly in one "
                                "variable scope share their canonical names"));
  }

 private:
  std::map<std::string, std::string> owners_;
};

using Items = std::vector<std::pair<std::string, SaverItem>>;

const Variable* variable_of(const SaverItem& item) { return std::get_if<Variable>(&item); }
const SaveableObject* saveable_of(const SaverItem& item) {
  const auto* const saveable = std::get_if<std::shared_ptr<SaveableObject>>(&item);
  return saveable ? saveable->get() : nullptr;
}

std::vector<const SaveableObject*> saveables_of(const Items& items) {
  std::vector<const SaveableObject*> saveables;
  for (const auto& [key, item] : items) {
    if (const SaveableObject* const saveable = saveable_of(item)) saveables.push_back(saveable);
  }
  return saveables;
}

// In TensorFlow the second of two replaces the first, whose tensors are lost.
void check_saveables(const char* call, const Items& items) {
  std::set<std::string> names;
  for (const auto& [key, item] : items) {
    if (variable_of(item)) continue;
    const SaveableObject* const saveable = saveable_of(item);
    if (!saveable) throw ArgumentError(message("[", call, "] a saveable is null"));
    if (names.insert(saveable->name()).second) continue;
    throw ArgumentError(message("[", call, "] two saveables have the name ", saveable->name(),
                                ", expected a different one for each"));
  }
}

void check_names(const Items& items, const Extras& extras) {
  TensorNames names;
  for (const auto& [key, item] : items) {
    const Variable* const variable = variable_of(item);
    if (variable) names.add(key, "the variable " + variable->name());
  }
  for (const SaveableObject* saveable : saveables_of(items)) {
    for (const std::string& name : saveable->spec_names()) names.add(name, saveable->name());
  }
  for (const auto& [name, value] : extras.values()) {
    names.add(std::string(checkpoint::kExtrasPrefix) + name, "the extras");
  }
}

const Variable* find(const std::vector<Variable>& variables, const Variable& like) {
  for (const Variable& variable : variables) {
    if (variable.same_as(like)) return &variable;
  }
  return nullptr;
}

bool same_item(const SaverItem& a, const SaverItem& b) {
  if (a.index() != b.index()) return false;
  const Variable* const variable = variable_of(a);
  return variable ? variable->same_as(std::get<Variable>(b)) : saveable_of(a) == saveable_of(b);
}

void check_by_name(const SaverOptions& options) {
  if (!options.by_name) return;
  if (options.variables || options.saveables || options.only_saveables) {
    throw ArgumentError(
        "[Saver] by_name is given beside variables, saveables or only_saveables, expected it "
        "alone");
  }
  for (auto one = options.by_name->begin(); one != options.by_name->end(); ++one) {
    const Variable* const variable = variable_of(one->second);
    if (variable ? variable->empty() : !saveable_of(one->second)) {
      throw ArgumentError(message("[Saver] '", one->first, "' is ", variable ? "empty" : "null",
                                  ", expected a variable or a saveable"));
    }
    for (auto other = options.by_name->begin(); other != one; ++other) {
      if (!same_item(one->second, other->second)) continue;
      throw ArgumentError(message("[Saver] '", other->first, "' and '", one->first,
                                  "' are the same, expected each variable and saveable once"));
    }
  }
}

}  // namespace

Saver::Saver(SaverOptions options) : options_(std::move(options)) {
  check_by_name(options_);
  if (options_.max_to_keep < 0) {
    throw ArgumentError(
        message("[Saver] max_to_keep ", options_.max_to_keep, ", expected 0 or more"));
  }
  if (!options_.graph) options_.graph = &Graph::current();
}

std::vector<Variable> Saver::variables() const {
  if (options_.only_saveables) return {};
  return options_.variables ? *options_.variables : options_.graph->variables();
}

std::vector<std::shared_ptr<SaveableObject>> Saver::saveables() const {
  if (options_.saveables) return *options_.saveables;
  // Given variables alone leave out the saveables of others.
  if (!options_.variables || options_.only_saveables) return options_.graph->saveables();
  std::vector<std::shared_ptr<SaveableObject>> chosen;
  for (const auto& saveable : options_.graph->saveables()) {
    if (find(*options_.variables, saveable->variable())) chosen.push_back(saveable);
  }
  return chosen;
}

Items Saver::items() const {
  Items items;
  if (options_.by_name) {
    items.assign(options_.by_name->begin(), options_.by_name->end());
  } else {
    for (const Variable& variable : variables()) items.emplace_back(variable.name(), variable);
    for (const auto& saveable : saveables()) {
      items.emplace_back(saveable ? saveable->name() : "", saveable);
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  return items;
}

void Saver::write(const std::string& prefix, const Extras& extras) const {
  const Items all = items();
  const bool by_default = !options_.variables && !options_.saveables && !options_.by_name;
  if (by_default && all.empty() && extras.values().empty()) {
    throw ArgumentError(message("[Saver::save] the graph has no variables, expected some that ",
                                "somebody holds, for '", prefix, "'"));
  }
  check_saveables("Saver::save", all);
  check_names(all, extras);
  TensorBundleWriter writer(prefix);
  for (const auto& [key, item] : all) {
    if (const Variable* const variable = variable_of(item)) {
      writer.add(key, variable->to_host());
      continue;
    }
    for (const SaveableObject::Spec& spec : saveable_of(item)->specs()) {
      writer.add(spec.name, spec.tensor);
    }
  }
  for (const auto& [name, value] : extras.values()) {
    writer.add({std::string(checkpoint::kExtrasPrefix) + name, value});
  }
  writer.finish();
}

std::string Saver::save(const std::string& path, std::optional<std::int64_t> global_step,
                        const Extras& extras) {
  const std::string prefix = global_step ? message(path, "-", *global_step) : path;
  write(prefix, extras);
  std::vector<std::string> kept = last_;
  std::erase(kept, prefix);
  kept.push_back(prefix);
  const std::size_t keep =
      options_.max_to_keep == 0 ? kept.size() : static_cast<std::size_t>(options_.max_to_keep);
  const auto extra = static_cast<std::ptrdiff_t>(kept.size() - std::min(kept.size(), keep));
  const std::vector<std::string> old(kept.begin(), kept.begin() + extra);
  kept.erase(kept.begin(), kept.begin() + extra);
  const std::string folder = std::filesystem::path(prefix).parent_path().string();
  write_checkpoint_state(folder.empty() ? "." : folder, {prefix, kept, {}, std::nullopt});
  last_ = std::move(kept);
  for (const std::string& gone : old) remove_tensor_bundle(gone);
  return prefix;
}

std::string Saver::save(const std::string& path, const Variable& global_step,
                        const Extras& extras) {
  return save(path, static_cast<std::int64_t>(global_step.read().item()), extras);
}

Extras Saver::restore(const std::string& prefix, const RestoreOptions& options) const {
  return restore(TensorBundleReader(prefix), options);
}

Extras Saver::restore(const TensorBundleReader& reader, const RestoreOptions& options) const {
  checkpoint::RestorePlan plan(reader);
  const Items all = items();
  check_saveables("Saver::restore", all);
  std::vector<Variable> covered;
  for (const SaveableObject* saveable : saveables_of(all)) {
    const auto raw = std::find_if(all.begin(), all.end(), [&](const auto& item) {
      const Variable* const variable = variable_of(item.second);
      return variable && variable->same_as(saveable->variable());
    });
    plan.add_saveable(*saveable, raw == all.end() ? nullptr : &raw->first);
    covered.push_back(saveable->variable());
  }
  for (const auto& [key, item] : all) {
    const Variable* const variable = variable_of(item);
    if (variable && !find(covered, *variable)) plan.add_variable(key, *variable);
  }
  plan.check_names(options.refuse_unexpected);
  Extras extras = checkpoint::extras_of(reader);
  plan.assign();
  return extras;
}

}  // namespace openrnn
