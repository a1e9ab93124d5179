// Communicators: those of the library, and objects of Python as one.
#include <nanobind/ndarray.h>

#include "python/train/communicator_ref.h"

namespace openrnn::python {
namespace {

/// An object with the functions of openrnn.train.Communicator. Called without the interpreter lock.
class PythonCommunicator final : public train::Communicator {
 public:
  PythonCommunicator(nb::object object, int rank, int size)
      : object_(std::move(object)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_to_all(const void* send, void* receive, std::size_t bytes) override {
    exchange("all_to_all", send, bytes * static_cast<std::size_t>(size_), receive, bytes);
  }
  void all_gather(const void* send, void* receive, std::size_t bytes) override {
    exchange("all_gather", send, bytes, receive, bytes);
  }
  void all_reduce(DType dtype, std::int64_t count, void* values) override {
    const nb::gil_scoped_acquire lock;
    const auto n = static_cast<std::size_t>(count);
    call("all_reduce", dtype == DType::kFloat64 ? array(static_cast<double*>(values), n)
                                                : array(static_cast<float*>(values), n));
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    const nb::gil_scoped_acquire lock;
    call("broadcast", array(static_cast<std::uint8_t*>(data), bytes), nb::int_(root));
  }
  void barrier() override {
    const nb::gil_scoped_acquire lock;
    call("barrier");
  }
  void abort(const std::string& why) override {
    const nb::gil_scoped_acquire lock;
    call("abort", nb::str(why.c_str()));
  }

 private:
  template <class T>
  static nb::object array(T* data, std::size_t count) {
    return nb::cast(nb::ndarray<nb::numpy, T>(data, {count}, nb::handle()),
                    nb::rv_policy::reference);
  }
  void exchange(const char* name, const void* send, std::size_t sent, void* receive,
                std::size_t bytes) {
    const nb::gil_scoped_acquire lock;
    call(name, array(static_cast<const std::uint8_t*>(send), sent),
         array(static_cast<std::uint8_t*>(receive), bytes * static_cast<std::size_t>(size_)));
  }
  template <class... Arguments>
  void call(const char* name, const Arguments&... arguments) const {
    object_.get().attr(name)(arguments...);
  }

  Kept object_;
  int rank_, size_;
};

/// NCCL's, which keeps the one that its ranks found each other by.
class NcclOverAnother {
 public:
  NcclOverAnother(std::shared_ptr<train::Communicator> bootstrap, int device, double timeout)
      : bootstrap_(std::move(bootstrap)),
        nccl_(train::nccl_communicator(*bootstrap_,
                                       {.device = device, .timeout_seconds = timeout})) {}
  ~NcclOverAnother() {
    // It may wait for other ranks, which may be threads of this process.
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire held;
    unlocked([&] { nccl_.reset(); });
  }
  NcclOverAnother(const NcclOverAnother&) = delete;
  NcclOverAnother& operator=(const NcclOverAnother&) = delete;

  static CommunicatorRef make(const CommunicatorRef& bootstrap, int device, double timeout) {
    const auto both = unlocked(
        [&] { return std::make_shared<NcclOverAnother>(bootstrap.core, device, timeout); });
    return {std::shared_ptr<train::Communicator>(both, both->nccl_.get())};
  }

 private:
  std::shared_ptr<train::Communicator> bootstrap_;
  std::unique_ptr<train::Communicator> nccl_;
};

/// train::Group, for the loop of fit().
struct GroupRef {
  std::shared_ptr<train::Communicator> communicator;  // outlives the group
  std::shared_ptr<train::Group> core;
};

void bind_group(nb::module_& m) {
  nb::class_<GroupRef>(m, "ProcessGroup", "The processes of one fit().")
      .def(
          "__init__",
          [](GroupRef* self, const CommunicatorRef& communicator, const std::string& reduction) {
            new (self) GroupRef{communicator.core,
                                std::make_shared<train::Group>(*communicator.core,
                                                               train::parse_reduction(reduction))};
          },
          "communicator"_a, "reduction"_a)
      .def_prop_ro("size", [](const GroupRef& self) { return self.core->size(); })
      .def_prop_ro("first", [](const GroupRef& self) { return self.core->first(); })
      .def(
          "own_of",
          [](const GroupRef& self, std::int64_t parts) {
            const auto [begin, end] = self.core->own_of(parts);
            return std::pair(begin, end);
          },
          "parts"_a)
      .def(
          "goes_on",
          [](const GroupRef& self, bool mine) {
            return unlocked([&] { return self.core->decide({.goes_on = mine}).goes_on; });
          },
          "mine"_a)
      .def(
          "number_of_first",
          [](const GroupRef& self, double mine) {
            return unlocked([&] { return self.core->number_of_first(mine); });
          },
          "mine"_a)
      .def(
          "require_same",
          [](const GroupRef& self, const std::string& what, const std::string& mine) {
            unlocked([&] { self.core->require_same("fit", what, mine); });
          },
          "what"_a, "mine"_a)
      .def(
          "fail",
          [](const GroupRef& self, const std::string& why) {
            unlocked([&] { self.core->fail(why); });
          },
          "why"_a);
}

}  // namespace

std::shared_ptr<train::Communicator> as_communicator(nb::handle value) {
  return value.is_none() ? nullptr : nb::cast<CommunicatorRef&>(value).core;
}

std::shared_ptr<train::Group> as_group(nb::handle value) {
  return value.is_none() ? nullptr : nb::cast<GroupRef&>(value).core;
}

void bind_communicators(nb::module_& m) {
  nb::class_<CommunicatorRef>(m, "CommunicatorBase", "A communicator of the library.")
      .def_prop_ro("rank", [](const CommunicatorRef& self) { return self.core->rank(); })
      .def_prop_ro("size", [](const CommunicatorRef& self) { return self.core->size(); })
      .def("barrier", [](const CommunicatorRef& self) { unlocked([&] { self.core->barrier(); }); })
      .def(
          "abort",
          [](const CommunicatorRef& self, const std::string& why) {
            unlocked([&] { self.core->abort(why); });
          },
          "why"_a);
  m.def(
      "python_communicator",
      [](nb::object object, int rank, int size) {
        return CommunicatorRef{std::make_shared<PythonCommunicator>(std::move(object), rank, size)};
      },
      "object"_a, "rank"_a, "size"_a);
  m.def("mpi_communicator",
        [] { return CommunicatorRef{unlocked([] { return train::mpi_communicator(); })}; });
  m.def("nccl_communicator", &NcclOverAnother::make, "bootstrap"_a, "device"_a, "timeout"_a);
  m.def("finish_mpi", [] { unlocked([] { train::finish_mpi(); }); });
  m.def("started_by_mpi", &train::started_by_mpi);
  m.def(
      "thread_communicators",
      [](int size) {
        std::vector<CommunicatorRef> all;
        for (auto& one : train::thread_communicators(size)) all.push_back({std::move(one)});
        return all;
      },
      "size"_a);
  m.def("expected_parts", &train::expected_parts, "parts"_a, "processes"_a);
  bind_group(m);
}

}  // namespace openrnn::python
