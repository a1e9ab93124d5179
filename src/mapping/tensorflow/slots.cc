// What optimizers keep beside variables.
#include <algorithm>
#include <map>

#include "mapping/tensorflow/form.h"
#include "mapping/tensorflow/variables.h"

namespace openrnn::mapping {

namespace {

/// A variable of a network, by the names that its slots are made of.
struct SlotOwner {
  std::size_t network = 0, tensor = 0;
};

std::string with_underscores(std::string name) {
  std::ranges::replace(name, '/', '_');
  return name;
}

/// Slots by network and name; the variable of each of the network's tensors.
using FoundSlots = std::map<std::pair<std::size_t, std::string>, std::vector<const TfVariable*>>;

class SlotFinder {
 public:
  explicit SlotFinder(const std::vector<TfNetwork>& made) : made_(made) {
    for (std::size_t i = 0; i < made.size(); ++i) {
      for (std::size_t j = 0; j < made[i].variables.size(); ++j) {
        const std::string& name = made[i].variables[j]->name;
        owners_[name] = {i, j};
        flat_owners_[with_underscores(name)] = {i, j};
      }
    }
  }

  void take(const TfVariable& variable) {
    const std::string_view name = variable.name;
    const std::size_t slash = name.rfind('/');
    if (slash == std::string_view::npos) return;
    if (take_of(owners_, name.substr(0, slash), name.substr(slash + 1), variable)) return;
    const std::string_view last = name.substr(slash + 1);
    for (std::size_t at = last.rfind('_'); at != std::string_view::npos && at > 0;
         at = last.rfind('_', at - 1)) {
      if (take_of(flat_owners_, last.substr(0, at), last.substr(at + 1), variable)) return;
    }
  }
  const FoundSlots& slots() const { return slots_; }

 private:
  using Owners = std::unordered_map<std::string, SlotOwner>;

  bool take_of(const Owners& owners, std::string_view of, std::string_view slot,
               const TfVariable& variable) {
    const auto owner = owners.find(std::string(of));
    if (owner == owners.end()) return false;
    const TfNetwork& network = made_[owner->second.network];
    if (network.variables[owner->second.tensor]->shape != variable.shape) return false;
    std::vector<const TfVariable*>& parts = slots_[{owner->second.network, std::string(slot)}];
    parts.resize(network.variables.size());
    parts[owner->second.tensor] = &variable;
    return true;
  }

  const std::vector<TfNetwork>& made_;
  Owners owners_, flat_owners_;
  FoundSlots slots_;
};

}  // namespace

void add_tf_slots(const ModelFile& file, const std::vector<TfNetwork>& made,
                  std::vector<const TfVariable*>* others, MappedModel* model) {
  SlotFinder finder(made);
  for (const TfVariable* other : *others) finder.take(*other);
  for (const auto& [at, parts] : finder.slots()) {
    const auto& [number, slot] = at;
    const bool whole = std::ranges::all_of(parts, [&parts = parts](const TfVariable* part) {
      return part && part->dtype.find("float") != std::string::npos &&
             part->dtype == parts[0]->dtype;
    });
    if (!whole) continue;
    std::vector<Array> arrays;
    for (const TfVariable* part : parts) arrays.push_back(file.read(part->key));
    std::vector<ConstArrayView> views;
    for (const Array& array : arrays) views.push_back(array.view());
    MappedNetwork& network = model->networks[number];
    network.slots.insert_or_assign(slot, tf_slot(network.spec, made[number].is_keras, views));
    std::erase_if(*others, [&parts = parts](const TfVariable* other) {
      return std::ranges::find(parts, other) != parts.end();
    });
  }
}

}  // namespace openrnn::mapping
