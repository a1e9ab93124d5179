#include <set>

#include "base/message.h"
#include "checkpoint/extras.h"
#include "checkpoint/restore_plan.h"

namespace openrnn {
namespace {

using Saveables = std::vector<std::shared_ptr<SaveableObject>>;

// TensorFlow lets the second of two take the first one's place, and its tensors are lost.
void check_saveables(const char* call, const Saveables& saveables) {
  std::set<std::string> names;
  for (const auto& saveable : saveables) {
    if (!saveable) throw ArgumentError(message("[", call, "] a saveable is null"));
    if (names.insert(saveable->name()).second) continue;
    throw ArgumentError(message("[", call, "] two saveables have the name ", saveable->name(),
                                ", expected a different one for each"));
  }
}

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

void check_names(const std::vector<Variable>& variables, const Saveables& saveables,
                 const Extras& extras) {
  TensorNames names;
  for (const Variable& variable : variables) {
    names.add(variable.name(), "the variable " + variable.name());
  }
  for (const auto& saveable : saveables) {
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

}  // namespace

Saver::Saver(SaverOptions options) : options_(std::move(options)) {
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

void Saver::save(const std::string& prefix, const Extras& extras) const {
  const std::vector<Variable> raw = variables();
  const Saveables all = saveables();
  check_saveables("Saver::save", all);
  check_names(raw, all, extras);
  TensorBundleWriter writer(prefix);
  for (const Variable& variable : raw) writer.add(variable.name(), variable.to_host());
  for (const auto& saveable : all) {
    for (const SaveableObject::Spec& spec : saveable->specs()) writer.add(spec.name, spec.tensor);
  }
  for (const auto& [name, value] : extras.values()) {
    writer.add({std::string(checkpoint::kExtrasPrefix) + name, value});
  }
  writer.finish();
}

Extras Saver::restore(const std::string& prefix, const RestoreOptions& options) const {
  const TensorBundleReader reader(prefix);
  checkpoint::RestorePlan plan(reader);
  const std::vector<Variable> raw = variables();
  const Saveables all = saveables();
  check_saveables("Saver::restore", all);
  std::vector<Variable> covered;
  for (const auto& saveable : all) {
    plan.add_saveable(*saveable, find(raw, saveable->variable()) != nullptr);
    covered.push_back(saveable->variable());
  }
  for (const Variable& variable : raw) {
    if (!find(covered, variable)) plan.add_variable(variable);
  }
  plan.check_names(options.refuse_unexpected);
  Extras extras = checkpoint::extras_of(reader);
  plan.assign();
  return extras;
}

}  // namespace openrnn
