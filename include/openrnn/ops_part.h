// Parts of a training step: rows of one batch that are computed one after another.
#pragma once

#include <optional>

#include "openrnn/base.h"

namespace openrnn::ops {

/// Consecutive rows of a batch.
struct BatchPart {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t whole_batch = 0;
  /// Throws: ArgumentError unless there are rows, and all lie in the batch.
  OPENRNN_API void validate() const;
};

/// The number of a step that will be computed in parts, new at every call. Thread-safe.
OPENRNN_API std::uint64_t new_step_of_parts();

/// While it lives, calls of this thread compute a part of a batch. Masks of layers and cells
/// (dropout, zoneout, DropConnect) are then those of a call with the whole batch, at the part's
/// rows, and the parts of a step draw the same calls' masks: a DropoutState counts what one of them
/// draws. So masks do not depend on how a batch is cut. Masks by a key of the caller's own are the
/// caller's. Scopes may be nested; the inner one counts.
class OPENRNN_API PartScope {
 public:
  /// `step`: of new_step_of_parts(), the same for all parts of the step. `batch_axis`: where the
  /// rows lie in what a Dropout is given, 0 or 1: [batch, .., C] or [time, batch, .., C]. Of two
  /// dimensions, [batch, C] in both cases; or those before the last one flattened, in their order.
  /// Left out, it is that of the axes 0 and 1 which has the part's rows; where both have them, or
  /// where they are flattened, a Dropout throws ArgumentError.
  /// Throws: ArgumentError as BatchPart::validate, and for another axis.
  PartScope(const BatchPart& part, std::uint64_t step,
            std::optional<std::int64_t> batch_axis = std::nullopt);
  ~PartScope();
  PartScope(const PartScope&) = delete;
  PartScope& operator=(const PartScope&) = delete;
  /// Of this thread; null: none.
  static const PartScope* current() noexcept;
  const BatchPart& part() const noexcept { return part_; }
  std::uint64_t step() const noexcept { return step_; }
  std::optional<std::int64_t> batch_axis() const noexcept { return batch_axis_; }

 private:
  BatchPart part_;
  std::uint64_t step_;
  std::optional<std::int64_t> batch_axis_;
  const PartScope* outer_;
};

}  // namespace openrnn::ops
