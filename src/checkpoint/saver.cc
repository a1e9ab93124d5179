#include <set>

#include "base/message.h"
#include "checkpoint/extras.h"
#include "checkpoint/restore_plan.h"

namespace openrnn {
namespace {

// Adds tensors to a bundle, each name once.
class NamedWriter {
 public:
  explicit NamedWriter(const std::string& prefix) : writer_(prefix) {}

  void add(const std::string& name, const TensorValue& value) {
    if (!names_.insert(name).second) {
      throw ArgumentError(message("[Saver::save] two tensors have the name ", name,
                                  ", expected each once: layers that were built explicitly in one "
                                  "variable scope share their canonical names"));
    }
    writer_.add({name, value});
  }
  void finish() { writer_.finish(); }

 private:
  TensorBundleWriter writer_;
  std::set<std::string> names_;
};

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
  NamedWriter writer(prefix);
  for (const Variable& variable : variables()) writer.add(variable.name(), variable.to_host());
  for (const auto& saveable : saveables()) {
    for (SaveableObject::Spec& spec : saveable->specs()) {
      writer.add(spec.name, std::move(spec.tensor));
    }
  }
  for (const auto& [name, value] : extras.values()) {
    writer.add(std::string(checkpoint::kExtrasPrefix) + name, value);
  }
  writer.finish();
}

Extras Saver::restore(const std::string& prefix, const RestoreOptions& options) const {
  const TensorBundleReader reader(prefix);
  checkpoint::RestorePlan plan(reader);
  const std::vector<Variable> raw = variables();
  std::vector<Variable> covered;
  for (const auto& saveable : saveables()) {
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
