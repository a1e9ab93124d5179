// What a checkpoint says of the arithmetic that its run was trained with.
#include "openrnn/train_fit.h"

namespace openrnn::train {
namespace {

constexpr const char *kMath = "math", *kKind = "math_kind";

// Another program's entry of that name says nothing here.
std::string string_or(const Extras& extras, const char* name, std::string otherwise) {
  if (!extras.contains(name)) return otherwise;
  const auto* strings = std::get_if<StringTensor>(&extras.get(name));
  return strings && strings->values.size() == 1 ? strings->values[0] : otherwise;
}

bool ends_with_kind(const std::string& kinds, std::string_view kind) {
  return kinds == kind || kinds.ends_with(", " + std::string(kind));
}

}  // namespace

TrainedArithmetic trained_arithmetic(const Extras& extras) {
  TrainedArithmetic found;
  found.math = string_or(extras, kMath, found.math);
  found.kind = string_or(extras, kKind, found.kind);
  return found;
}

void save_arithmetic(const SequenceModel& model, const std::optional<Extras>& resumed,
                     Extras& extras) {
  std::string kind(model.rnn().math_kind());
  if (resumed && resumed->contains(kKind)) {
    const std::string before = trained_arithmetic(*resumed).kind;
    kind = ends_with_kind(before, kind) ? before : before + ", " + kind;
  }
  extras.set_string(kMath, std::string(to_string(model.config().math)));
  extras.set_string(kKind, kind);
}

}  // namespace openrnn::train
