#include <algorithm>
#include <set>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/support/options.h"
#include "mapping/tensorflow/form.h"
#include "mapping/tensorflow/tensorflow.h"
#include "mapping/tensorflow/variables.h"

namespace openrnn::mapping {

namespace {

// The cells of a network, if they are one: each place once, sizes that fit, options that agree.
std::optional<RnnSpec> joined_spec(const std::vector<TfCell>& cells) {
  RnnSpec spec = cells[0].spec;
  std::set<std::pair<std::int64_t, std::int64_t>> places;
  for (const TfCell& cell : cells) {
    places.emplace(cell.layer, cell.direction);
    spec.num_layers = std::max(spec.num_layers, cell.layer + 1);
    if (cell.layer == 0) spec.input_size = cell.spec.input_size;
  }
  if (cells[0].bidirectional) spec.direction = Direction::kBidirectional;
  if (places.size() != cells.size() ||
      static_cast<std::int64_t>(cells.size()) != spec.num_pseudo_layers()) {
    return std::nullopt;
  }
  for (const TfCell& cell : cells) {
    RnnSpec alone = spec;
    alone.num_layers = 1;
    alone.direction = Direction::kUnidirectional;
    alone.input_size = spec.layer_input_size(cell.layer);
    if (cell.spec != alone || cell.is_keras != cells[0].is_keras) return std::nullopt;
  }
  return spec;
}

class TfLoader {
 public:
  TfLoader(const ModelFile& file, const MappingHints& hints) : file_(file), hints_(hints) {
    model_.kind = file.kind();
  }

  MappedModel load() && {
    TfVariables found = tf_variables(file_);
    model_.values = std::move(found.values);
    std::vector<const TfVariable*> others;
    const std::vector<TfScope> scopes = tf_scopes(found.variables, &others);
    for (auto& [name, cells] : cells_of(scopes, &others)) add_cells(name, cells, &others);
    add_tf_opaque(file_, made_, hints_, &others, &model_);
    add_tf_slots(file_, made_, &others, &model_);
    for (const TfVariable* other : others) {
      // Of a graph, the arguments of its operations.
      if (file_.kind() == FileKind::kTfGraph && !other->dtype.starts_with("float")) continue;
      model_.not_understood.push_back(other->key);
    }
    return std::move(model_);
  }

 private:
  using NamedCells = std::vector<std::pair<std::string, std::vector<TfCell>>>;

  // By their networks' names, in the order of the file.
  NamedCells cells_of(const std::vector<TfScope>& scopes, std::vector<const TfVariable*>* others) {
    NamedCells groups;
    for (const TfScope& scope : scopes) {
      std::optional<TfCell> cell;
      try {
        cell = tf_cell(scope, hints_, file_.path());
      } catch (const NoCell& reason) {
        model_.notes.push_back(message("no network was made from '", excerpt(scope.scope), "/",
                                       scope.tensors.begin()->first,
                                       "' and the like: ", reason.why));
      }
      if (!cell) {
        for (const auto& [suffix, variable] : scope.tensors) others->push_back(variable);
        continue;
      }
      const auto found = std::ranges::find(groups, cell->network, &NamedCells::value_type::first);
      if (found == groups.end()) {
        groups.push_back({cell->network, {*cell}});
      } else {
        found->second.push_back(*cell);
      }
    }
    return groups;
  }

  void add_cells(const std::string& name, const std::vector<TfCell>& cells,
                 std::vector<const TfVariable*>* others) {
    if (const std::optional<RnnSpec> spec = joined_spec(cells)) {
      add_network(name, *spec, cells, others);
      return;
    }
    model_.notes.push_back(message("the ", cells.size(), " cells at '", excerpt(name),
                                   "' do not make one network: each is one of its own"));
    for (TfCell cell : cells) {
      cell.layer = cell.direction = 0;
      add_network(cell.scope->scope, cell.spec, {cell}, others);
    }
  }

  // Every tensor is there, with its shape, and nothing else is.
  std::vector<const TfVariable*> matched(const RnnSpec& spec, const std::vector<TfCell>& cells) {
    std::vector<const TfVariable*> variables;
    for (const TfFormTensor& tensor : tf_form(spec, cells[0].is_keras)) {
      const auto cell = std::ranges::find_if(cells, [&](const TfCell& one) {
        return one.layer == tensor.layer && one.direction == tensor.direction;
      });
      const TfVariable* const variable = cell->scope->find(tensor.suffix);
      if (!variable) throw NoCell{message("it has no ", tensor.suffix)};
      if (variable->shape != tensor.shape || variable->dtype != dtype_name(spec.dtype)) {
        throw NoCell{message(tensor.suffix, " is ", excerpt(variable->dtype), " ",
                             to_string(variable->shape), ", expected ", dtype_name(spec.dtype), " ",
                             to_string(tensor.shape))};
      }
      variables.push_back(variable);
    }
    std::size_t there = 0;
    for (const TfCell& cell : cells) there += cell.scope->tensors.size();
    if (there == variables.size()) return variables;
    throw NoCell{message("it has ", there, " tensors, expected the ", variables.size(), " of ",
                         describe(spec))};
  }

  void add_network(const std::string& name, const RnnSpec& spec, const std::vector<TfCell>& cells,
                   std::vector<const TfVariable*>* others) {
    const bool is_keras = cells[0].is_keras;
    try {
      const std::vector<const TfVariable*> variables = matched(spec, cells);
      const auto read = [&](std::size_t i, const TfRowVisitor& visit) {
        file_.read_rows(variables[i]->key, visit);
      };
      MappedNetwork network{.name = name, .spec = spec, .params = tf_params(spec, is_keras, read)};
      for (const TfVariable* variable : variables) network.tensors.push_back(variable->key);
      if (!is_keras && cells[0].kind->forget_bias != 0.0 && !hints_.forget_bias) {
        model_.notes.push_back(message("forget_bias of ", network_called(name),
                                       " is not in the file: TensorFlow's default for a ",
                                       cells[0].kind->name, " is taken, ", spec.forget_bias));
      }
      model_.networks.push_back(std::move(network));
      made_.push_back({is_keras, variables});
    } catch (const NoCell& reason) {
      model_.notes.push_back(message("no network was made from the tensors at '",
                                     excerpt(cells[0].scope->scope), "': ", reason.why));
      for (const TfCell& cell : cells) {
        for (const auto& [suffix, variable] : cell.scope->tensors) others->push_back(variable);
      }
    }
  }

  const ModelFile& file_;
  const MappingHints& hints_;
  MappedModel model_;
  std::vector<TfNetwork> made_;
};

}  // namespace

MappedModel map_tensorflow(const ModelFile& file, const MappingHints& hints) {
  return TfLoader(file, hints).load();
}

}  // namespace openrnn::mapping
