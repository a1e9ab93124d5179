// The raw variable of CudnnLSTM and the like.
#include <algorithm>
#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/tensorflow/variables.h"
#include "openrnn/saveables.h"

namespace openrnn::mapping {

namespace {

constexpr std::string_view kOpaque = "opaque_kernel";

bool is_opaque(std::string_view name) {
  return name == kOpaque || name.ends_with("/opaque_kernel");
}

// The network as the raw variable has it, with cuDNN's two biases.
RnnSpec opaque_spec(RnnSpec spec) {
  spec.single_bias = false;
  return spec;
}

bool equal_arrays(const std::vector<Array>& a, const std::vector<Array>& b) {
  return std::ranges::equal(a, b, [](const Array& one, const Array& other) {
    return one.shape() == other.shape() &&
           (one.size() == 0 || std::memcmp(one.data(), other.data(), one.size_bytes()) == 0);
  });
}

// Whether a buffer says the same as the tensors of the cells.
bool says_the_same(const MappedNetwork& network, const Array& opaque) {
  const TfCanonicalFormat raw(opaque_spec(network.spec)), made(network.spec);
  return equal_arrays(raw.from_opaque("load_networks", opaque.view()),
                      made.from_opaque("load_networks", network.params.view()));
}

bool can_be_of(const TfNetwork& made, const RnnSpec& spec, const TfVariable& variable) {
  return !made.is_keras && spec.forget_bias == 0.0 && spec.reset_after &&
         variable.dtype == dtype_name(spec.dtype) &&
         variable.shape == Shape{params_size(opaque_spec(spec))};
}

// 'opaque_kernel/Adam': a buffer of the same shape.
void take_raw_slots(const ModelFile& file, const TfVariable& of,
                    std::vector<const TfVariable*>* others, MappedNetwork* network) {
  std::erase_if(*others, [&](const TfVariable* other) {
    if (!other->name.starts_with(of.name + "/") || other->shape != of.shape ||
        other->dtype.find("float") == std::string::npos) {
      return false;
    }
    network->slots.insert_or_assign(other->name.substr(of.name.size() + 1), file.read(other->key));
    return true;
  });
}

std::string name_of_opaque(const std::string& variable) {
  return variable.substr(0, variable.size() - std::min(variable.size(), kOpaque.size() + 1));
}

void add_alone(const ModelFile& file, const TfVariable& variable, const MappingHints& hints,
               std::vector<const TfVariable*>* others, MappedModel* model) {
  if (!hints.network) {
    model->notes.push_back(message("'", excerpt(variable.name), "' is an opaque buffer, whose ",
                                   "network the file does not say, expected the hint network"));
    return;
  }
  const std::int64_t size = params_size(*hints.network);
  if (variable.shape != Shape{size} || variable.dtype != dtype_name(hints.network->dtype)) {
    throw ArgumentError(message("[load_networks] '", excerpt(variable.name), "' in ", file.path(),
                                " is ", excerpt(variable.dtype), " ", to_string(variable.shape),
                                ", expected ", dtype_name(hints.network->dtype), " of ", size,
                                " elements of the hint network, ", describe(*hints.network)));
  }
  MappedNetwork network{.name = name_of_opaque(variable.name),
                        .spec = *hints.network,
                        .params = file.read(variable.key),
                        .tensors = {variable.key}};
  std::erase(*others, &variable);
  take_raw_slots(file, variable, others, &network);
  model->notes.push_back(message("'", excerpt(variable.name),
                                 "' was read as an opaque buffer, with the layout of cuDNN"));
  model->networks.push_back(std::move(network));
}

}  // namespace

void add_tf_opaque(const ModelFile& file, const std::vector<TfNetwork>& made,
                   const MappingHints& hints, std::vector<const TfVariable*>* others,
                   MappedModel* model) {
  for (const TfVariable* variable : std::vector(*others)) {
    if (!is_opaque(variable->name) || variable->shape.size() != 1) continue;
    std::vector<MappedNetwork*> same;
    bool differs = false;
    for (std::size_t i = 0; i < made.size(); ++i) {
      MappedNetwork& network = model->networks[i];
      if (!can_be_of(made[i], network.spec, *variable)) continue;
      if (says_the_same(network, file.read(variable->key))) {
        same.push_back(&network);
      } else {
        differs = true;
      }
    }
    if (same.size() == 1) {
      // The cells have the sums of two biases, which the buffer has apart.
      same[0]->spec = opaque_spec(same[0]->spec);
      same[0]->params = file.read(variable->key);
      same[0]->tensors.push_back(variable->key);
      std::erase(*others, variable);
      take_raw_slots(file, *variable, others, same[0]);
    } else if (same.empty() && differs) {
      model->notes.push_back(message("'", excerpt(variable->name),
                                     "' differs from the tensors of its cells, which count"));
    } else if (same.empty()) {
      add_alone(file, *variable, hints, others, model);
    }
  }
}

}  // namespace openrnn::mapping
