// What a checkpoint says of the arithmetic that its run was trained with.
#include "engine/sum_order.h"
#include "openrnn/train_run.h"

namespace openrnn::train {
namespace {

constexpr const char *kMath = "math", *kKind = "math_kind", *kVersion = "arithmetic";

// Another program's entry of that name is ignored.
std::string string_or(const Extras& extras, const char* name, std::string otherwise) {
  if (!extras.contains(name)) return otherwise;
  const auto* strings = std::get_if<StringTensor>(&extras.get(name));
  return strings && strings->values.size() == 1 ? strings->values[0] : otherwise;
}

// The list with one more at its end, unless it ends with that.
std::string with_last(const std::string& list, const std::string& last) {
  return list == last || list.ends_with(", " + last) ? list : list + ", " + last;
}

}  // namespace

std::string arithmetic_version() { return std::to_string(kArithmeticVersion); }

TrainedArithmetic trained_arithmetic(const Extras& extras) {
  TrainedArithmetic found;
  found.math = string_or(extras, kMath, found.math);
  found.kind = string_or(extras, kKind, found.kind);
  found.version = string_or(extras, kVersion, found.version);
  return found;
}

void save_arithmetic(const SequenceModel& model, const std::optional<Extras>& resumed,
                     Extras& extras) {
  TrainedArithmetic now{.kind = std::string(model.rnn().math_kind()),
                        .version = arithmetic_version()};
  if (resumed) {
    const TrainedArithmetic before = trained_arithmetic(*resumed);
    if (resumed->contains(kKind)) now.kind = with_last(before.kind, now.kind);
    now.version = with_last(before.version, now.version);
  }
  extras.set_string(kMath, std::string(to_string(model.config().network.compute.math)));
  extras.set_string(kKind, now.kind);
  extras.set_string(kVersion, now.version);
}

}  // namespace openrnn::train
