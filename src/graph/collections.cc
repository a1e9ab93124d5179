// The collections of a graph by name.
#include "base/message.h"
#include "graph/graph_state.h"

namespace openrnn {
namespace {

[[noreturn]] void refuse(const std::string& key, const char* expected) {
  throw TypeError(
      message("[add_to_collection] a value of another type for '", key, "', expected ", expected));
}

template <class T>
std::vector<std::any> as_any(const std::vector<T>& values) {
  return std::vector<std::any>(values.begin(), values.end());
}

}  // namespace

void Graph::add_to_collection(const std::string& key, std::any value) {
  if (key == GraphKeys::kGlobalVariables || key == GraphKeys::kTrainableVariables) {
    throw ArgumentError(message("[add_to_collection] key is '", key,
                                "', which variables enter when they are made; expected another "
                                "one"));
  }
  if (key == GraphKeys::kSaveableObjects) {
    auto* const saveable = std::any_cast<std::shared_ptr<SaveableObject>>(&value);
    if (!saveable) refuse(key, "a std::shared_ptr<SaveableObject>");
    return add_saveable(std::move(*saveable));
  }
  if (key == GraphKeys::kRegularizationLosses) {
    if (const auto* const loss = std::any_cast<Tensor>(&value)) {
      return add_regularization_loss([loss = *loss] { return loss; });
    }
    auto* const loss = std::any_cast<std::function<Tensor()>>(&value);
    if (!loss) refuse(key, "a std::function<Tensor()> or a Tensor");
    return add_regularization_loss(std::move(*loss));
  }
  if (key == GraphKeys::kUpdateOps) {
    auto* const update = std::any_cast<std::function<void()>>(&value);
    if (!update || !*update) refuse(key, "a std::function<void()> that is not empty");
    return add_update(std::make_shared<const std::function<void()>>(std::move(*update)));
  }
  state_->collections[key].push_back(std::move(value));
}

std::vector<std::any> Graph::get_collection(const std::string& key) const {
  if (key == GraphKeys::kGlobalVariables) return as_any(variables());
  if (key == GraphKeys::kTrainableVariables) return as_any(trainable_variables());
  if (key == GraphKeys::kSaveableObjects) return as_any(saveables());
  if (key == GraphKeys::kRegularizationLosses) return as_any(regularization_losses());
  if (key == GraphKeys::kUpdateOps) {
    std::vector<std::any> all;
    for (const auto& update : updates()) all.emplace_back(*update);
    return all;
  }
  const auto found = state_->collections.find(key);
  return found == state_->collections.end() ? std::vector<std::any>() : found->second;
}

void Graph::throw_other_type(const std::string& key, std::size_t index) {
  throw TypeError(message("[get_collection] value ", index, " of '", key,
                          "' is of another type, expected the one that was asked for"));
}

}  // namespace openrnn
