// PackedModel, InferenceSession and StreamPool over memory that Python owns. The package checks
// shapes and dtypes; here only the sizes of the arrays are checked.
#include "base/message.h"
#include "openrnn/runtime.h"
#include "python/layers/layer_ref.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace {

/// The memory of a C-contiguous array, while it exists; nothing for None.
class Borrowed {
 public:
  Borrowed(const char* call, nb::handle array, bool writable, std::int64_t bytes) {
    if (array.is_none()) return;
    const int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array.ptr(), &view_, flags) != 0) throw nb::python_error();
    held_ = true;
    if (view_.len == static_cast<Py_ssize_t>(bytes)) return;
    const Py_ssize_t length = view_.len;
    PyBuffer_Release(&view_);
    throw ArgumentError(message("[", call, "] an array of ", length, " bytes, expected ", bytes));
  }
  ~Borrowed() {
    if (held_) PyBuffer_Release(&view_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  void* data() const { return held_ ? view_.buf : nullptr; }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

struct ModelRef {
  std::shared_ptr<const PackedModel> model;
  const RnnSpec& spec() const { return model->spec(); }
  std::int64_t bytes(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(dtype_size(spec().dtype));
  }
  std::int64_t h_bytes(std::int64_t batch) const {
    return bytes(shape_size(spec().h_shape(batch)));
  }
  std::int64_t c_bytes(std::int64_t batch) const {
    return spec().has_cell() ? bytes(shape_size(spec().c_shape(batch))) : 0;
  }
};

struct SessionRef {
  InferenceSession session;
  ModelRef model;
  CallLock calls = {};
};

struct PoolRef {
  StreamPool pool;
  ModelRef model;
  CallLock calls = {};
};

// The constructor's arguments: what a network is, and how it is computed.
nb::dict dict_of(const RnnSpec& spec) {
  nb::dict result = network_dict(
      spec, [](const RnnField& field) { return field.group != FieldGroup::kTraining; });
  result["num_proj"] = spec.num_proj;  // a number here always
  return result;
}

void bind_packed_model(nb::module_& m) {
  nb::class_<ModelRef>(m, "PackedModelBase")
      .def(
          "__init__",
          [](ModelRef* self, nb::handle params, const nb::dict& options, int max_threads) {
            const RnnSpec spec = as_network("PackedModel", options);
            const std::vector<Array> given =
                as_arrays(nb::make_tuple(params), {.call = "PackedModel", .dtype = spec.dtype});
            new (self) ModelRef{unlocked([&] {
              return std::make_shared<const PackedModel>(spec, given[0].view(),
                                                         ModelOptions{max_threads});
            })};
          },
          "params"_any, "options"_a, "max_threads"_a,
          nb::sig("def __init__(self, params: typing.Any, options: dict[str, typing.Any], "
                  "max_threads: int) -> None"))
      .def_prop_ro(
          "spec_core", [](const ModelRef& self) { return dict_of(self.spec()); },
          nb::sig("def spec_core(self) -> dict[str, typing.Any]"));
  m.def(
      "spec_of_layer",
      [](const LayerRef& layer) {
        return dict_of(layer.as<layers::CudnnRnn>("from_layer").spec());
      },
      "layer"_a, nb::sig("def spec_of_layer(layer: LayerBase) -> dict[str, typing.Any]"));
}

ForwardArgs forward_args(nb::handle lengths, std::int64_t max_time, std::int64_t batch,
                         bool time_major, const Borrowed& length_memory) {
  ForwardArgs args;
  args.max_time = max_time;
  args.batch = batch;
  args.time_major = time_major;
  if (!lengths.is_none()) {
    args.sequence_lengths = static_cast<const std::int32_t*>(length_memory.data());
  }
  return args;
}

void run(SessionRef& self, const nb::dict& arrays, nb::handle lengths, std::int64_t max_time,
         std::int64_t batch, bool time_major) {
  const ModelRef& model = self.model;
  const RnnSpec& spec = model.spec();
  const auto memory = [&](const char* name, bool writable, std::int64_t bytes) {
    return Borrowed("run", arrays[name], writable, bytes);
  };
  const Borrowed length_memory("run", lengths, false, batch * 4);
  const Borrowed x = memory("x", false, model.bytes(max_time * batch * spec.input_size));
  const Borrowed y = memory("y", true, model.bytes(max_time * batch * spec.output_size()));
  const Borrowed h0 = memory("h0", false, model.h_bytes(batch));
  const Borrowed c0 = memory("c0", false, model.c_bytes(batch));
  const Borrowed hn = memory("hn", true, model.h_bytes(batch));
  const Borrowed cn = memory("cn", true, model.c_bytes(batch));
  ForwardArgs args = forward_args(lengths, max_time, batch, time_major, length_memory);
  args.x = x.data();
  args.y = y.data();
  args.h0 = h0.data();
  args.c0 = c0.data();
  args.hn = hn.data();
  args.cn = cn.data();
  const auto lock = self.calls.take();
  unlocked([&] { self.session.run(args); });
}

void bind_session(nb::module_& m) {
  nb::class_<SessionRef>(m, "InferenceSessionBase")
      .def(
          "__init__",
          [](SessionRef* self, const ModelRef& model, int max_threads) {
            new (self)
                SessionRef{InferenceSession(model.model, {.max_threads = max_threads}), model};
          },
          "model"_a, "max_threads"_a)
      .def(
          "prepare",
          [](SessionRef& self, std::int64_t max_batch, std::int64_t max_time) {
            const auto lock = self.calls.take();
            unlocked([&] { self.session.prepare(max_batch, max_time); });
          },
          "max_batch"_a, "max_time"_a,
          "Allocates for runs of up to that batch size and time, so that they allocate nothing "
          "here. A larger run allocates itself.")
      .def("run_core", &run, "arrays"_a, "lengths"_any, "max_time"_a, "batch"_a, "time_major"_a,
           nb::sig("def run_core(self, arrays: dict[str, typing.Any], lengths: typing.Any, "
                   "max_time: int, batch: int, time_major: bool) -> None"));
}

StreamId stream_id(std::int64_t id) { return static_cast<StreamId>(id); }

void step(PoolRef& self, const std::vector<std::int64_t>& ids, nb::handle x, nb::handle y,
          nb::handle lengths, std::int64_t max_time, bool time_major) {
  const RnnSpec& spec = self.model.spec();
  const auto batch = static_cast<std::int64_t>(ids.size());
  std::vector<StreamId> named;
  for (const std::int64_t id : ids) named.push_back(stream_id(id));
  const Borrowed length_memory("step", lengths, false, batch * 4);
  const Borrowed from("step", x, false, self.model.bytes(max_time * batch * spec.input_size));
  const Borrowed to("step", y, true, self.model.bytes(max_time * batch * spec.output_size()));
  StreamStep step;
  step.ids = named;
  step.max_time = max_time;
  step.time_major = time_major;
  step.sequence_lengths = static_cast<const std::int32_t*>(length_memory.data());
  step.x = from.data();
  step.y = to.data();
  const auto lock = self.calls.take();
  unlocked([&] { self.pool.step(step); });
}

void bind_streams(nb::class_<PoolRef>& pool) {
  pool.def(
          "join_core",
          [](PoolRef& self, nb::handle h, nb::handle c) {
            const Borrowed of_h("join", h, false, self.model.h_bytes(1));
            const Borrowed of_c("join", c, false, self.model.c_bytes(1));
            const auto lock = self.calls.take();
            return static_cast<std::int64_t>(self.pool.join(of_h.data(), of_c.data()));
          },
          "h"_any, "c"_any)
      .def(
          "leave",
          [](PoolRef& self, std::int64_t id) {
            const auto lock = self.calls.take();
            self.pool.leave(stream_id(id));
          },
          "id"_a, "Closes the stream. Raises ArgumentError for one that is not open.")
      .def(
          "reset_core",
          [](PoolRef& self, std::int64_t id, nb::handle h, nb::handle c) {
            const Borrowed of_h("reset", h, false, self.model.h_bytes(1));
            const Borrowed of_c("reset", c, false, self.model.c_bytes(1));
            const auto lock = self.calls.take();
            self.pool.reset(stream_id(id), of_h.data(), of_c.data());
          },
          "id"_a, "h"_any, "c"_any)
      .def(
          "read_core",
          [](PoolRef& self, std::int64_t id, nb::handle h, nb::handle c) {
            const Borrowed of_h("read", h, true, self.model.h_bytes(1));
            const Borrowed of_c("read", c, true, self.model.c_bytes(1));
            const auto lock = self.calls.take();
            self.pool.read(stream_id(id), of_h.data(), of_c.data());
          },
          "id"_a, "h"_any, "c"_any);
}

void bind_pool(nb::module_& m) {
  nb::class_<PoolRef> pool(m, "StreamPoolBase");
  pool.def(
          "__init__",
          [](PoolRef* self, const ModelRef& model, std::int64_t streams, std::int64_t batch,
             std::int64_t time, int max_threads) {
            const StreamLimits limits{
                .streams = streams, .batch = batch, .time = time, .threads = max_threads};
            new (self) PoolRef{StreamPool(model.model, limits), model};
          },
          "model"_a, "streams"_a, "batch"_a, "time"_a, "max_threads"_a)
      .def("__len__", [](const PoolRef& self) { return self.pool.size(); })
      .def("__contains__",
           [](const PoolRef& self, std::int64_t id) { return self.pool.contains(stream_id(id)); })
      .def("step_core", &step, "ids"_a, "x"_any, "y"_any, "lengths"_any, "max_time"_a,
           "time_major"_a);
  bind_streams(pool);
}

}  // namespace

void bind_sessions(nb::module_& m) {
  bind_packed_model(m);
  bind_session(m);
  bind_pool(m);
}

}  // namespace openrnn::python
