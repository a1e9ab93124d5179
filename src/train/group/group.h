// The processes of a run, as one of them sees them.
#pragma once

#include "openrnn/train_communicator.h"
#include "train/group/reduce.h"

namespace openrnn::train {

/// Every message of a run goes through here. Before anything large travels, and wherever the
/// processes have to decide alike, each sends a short notice; one that has failed sends that in its
/// place, so that the others end with a PeerError instead of waiting for it.
class Group {
 public:
  /// The communicator must outlive it.
  Group(Communicator& communicator, Reduction reduction)
      : communicator_(communicator), reduction_(reduction) {}
  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  bool first() const { return rank() == 0; }

  /// Which of `parts` parts of a step this process computes.
  struct Range {
    std::int64_t begin, end;
  };
  Range own_of(std::int64_t parts) const;

  /// Runs this process's work, then waits for that of the others. Throws: what `work` throws, and
  /// PeerError when that of another process has failed.
  template <class Work>
  void together(Work&& work) {
    guarded(work);
    exchange({.point = Point::kTogether});
  }
  /// The first process alone works.
  template <class Work>
  void first_works(Work&& work) {
    together([&] {
      if (first()) work();
    });
  }
  /// Tells the others of an exception before it goes on.
  template <class Work>
  void guarded(Work&& work) {
    try {
      work();
    } catch (const std::exception& error) {
      fail(error.what());
      throw;
    } catch (...) {
      fail("an error of unknown type");
      throw;
    }
  }
  /// Messages of a kind of their own: an error among them cannot be told by a notice.
  template <class Work>
  void with_messages(Work&& work) {
    exchange({.point = Point::kMessages});
    busy_ = true;
    work(communicator_);
    busy_ = false;
  }

  /// Whether all processes go on, and whether the first one wants to save.
  struct Decision {
    bool goes_on = true;
    bool saves = false;
  };
  Decision decide(const Decision& mine);
  /// The first process's number, and its text.
  double number_of_first(double mine);
  std::string text_of_first(const std::string& mine);
  /// Throws: StateError naming `call`, `what` and a rank that has another text than rank 0.
  void require_same(std::string_view call, std::string_view what, const std::string& mine);

  /// The whole step of the own parts of all; without own parts that have rows: empty. `early` has
  /// the sums over the ranks that reduce_early has made, at the places of their variables.
  GradientSum::Step sum(std::optional<GradientSum::Step> own,
                        const std::vector<Variable>& variables,
                        std::vector<DeviceArray> early = {});
  /// Adds parts of gradients over the ranks, which all come to this with the same ones. kAlone:
  /// beside a pass that goes on.
  void reduce_early(DType dtype, const std::vector<SharedPart>& parts, Adding adding);
  bool takes_any_thread() const { return communicator_.takes_any_thread(); }
  const ReductionCost& cost() const { return cost_; }
  /// Tells the others that this process has failed, once; what guarded() does.
  void fail(const std::string& why);

 private:
  enum class Point : std::uint32_t {
    kTogether,
    kMessages,
    kDecide,
    kNumber,
    kText,
    kEarly,
    kStep,
    kFailed,
  };
  static constexpr std::size_t kFlags = 256;
  struct Notice {
    Point point = Point::kTogether;
    std::uint32_t yes = 0, saves = 0, reserved = 0;
    double number = 0.0;
    std::uint64_t size = 0;                 // of a text
    std::uint64_t flags[kFlags / 64] = {};  // the first variables that have a gradient
  };
  std::vector<Notice> exchange(const Notice& mine);
  [[noreturn]] void throw_failure(const std::vector<Notice>& all, const std::string& own_text);
  std::vector<bool> present_anywhere(const std::vector<Notice>& all, const std::vector<bool>& own);

  Communicator& communicator_;
  Reduction reduction_;
  ReductionCost cost_;
  bool busy_ = false;    // in messages that are no notices
  bool broken_ = false;  // a process has failed: nobody waits for the others any more
};

/// Empty where `parts` parts of a step can be computed by `processes`; else what was expected, to
/// follow "expected ".
std::string expected_parts(std::int64_t parts, int processes);

}  // namespace openrnn::train
