// A call whose arguments fit no binding: the package's message replaces nanobind's.
#include <nb_internals.h>

#include <algorithm>
#include <array>

#include "python/support/common.h"

namespace openrnn::python {
namespace {

using Dispatcher = decltype(nb::detail::nb_func::vectorcall);

// nanobind's dispatchers, as found on the functions of the module.
std::array<Dispatcher, 8> dispatchers{};
// reword(function, args, kwargs) of the package gives the message; null until it is there.
PyObject* reword = nullptr;

bool is_misfit(const nb::python_error& error) {
  if (!error.matches(PyExc_TypeError)) return false;
  const auto text = nb::cast<std::string>(nb::str(error.value()));
  return text.find("(): incompatible function arguments") != std::string::npos;
}

void say_anew(PyObject* function, PyObject* const* args, std::size_t count, PyObject* names) {
  nb::python_error error;
  if (!reword || !is_misfit(error)) {
    error.restore();
    return;
  }
  try {
    nb::list given;
    for (std::size_t i = 0; i < count; ++i) given.append(nb::handle(args[i]));
    nb::dict named;
    const auto keys = names ? nb::borrow<nb::tuple>(names) : nb::tuple();
    for (std::size_t i = 0; i < keys.size(); ++i) named[keys[i]] = nb::handle(args[count + i]);
    const nb::object text = nb::handle(reword)(nb::handle(function), given, named);
    PyErr_SetObject(PyExc_TypeError, text.ptr());
  } catch (nb::python_error&) {
    error.restore();
  }
}

template <std::size_t kIndex>
PyObject* dispatch(PyObject* function, PyObject* const* args, std::size_t count_and_flag,
                   PyObject* names) {
  PyObject* const result = dispatchers[kIndex](function, args, count_and_flag, names);
  if (!result) {
    const auto count = static_cast<std::size_t>(NB_VECTORCALL_NARGS_EXT(count_and_flag));
    say_anew(function, args, count, names);
  }
  return result;
}

constexpr std::array<Dispatcher, 8> kOurs{dispatch<0>, dispatch<1>, dispatch<2>, dispatch<3>,
                                          dispatch<4>, dispatch<5>, dispatch<6>, dispatch<7>};

void take_over(nb::handle object) {
  const auto type = nb::cast<std::string>(nb::str(object.type().attr("__name__")));
  if (type == "property") {
    take_over(object.attr("fget"));
    take_over(object.attr("fset"));
  }
  if (type != "nb_func" && type != "nb_method") return;
  auto* const function = reinterpret_cast<nb::detail::nb_func*>(object.ptr());
  const auto* const known =
      std::find_if(dispatchers.begin(), dispatchers.end(),
                   [&](Dispatcher one) { return !one || one == function->vectorcall; });
  if (known == dispatchers.end()) return;  // a later nanobind with more of them: its own message
  const auto index = static_cast<std::size_t>(known - dispatchers.begin());
  dispatchers[index] = function->vectorcall;
  function->vectorcall = kOurs[index];
}

}  // namespace

void bind_messages(nb::module_& m) {
  m.def(
      "set_reword", [](nb::object function) { reword = function.release().ptr(); }, "function"_a,
      nb::sig("def set_reword(function: typing.Callable[..., str]) -> None"));
  for (const auto& [name, member] : nb::borrow<nb::dict>(m.attr("__dict__"))) {
    take_over(member);
    if (!PyType_Check(member.ptr())) continue;
    const nb::object members =
        nb::module_::import_("builtins").attr("dict")(member.attr("__dict__"));
    for (const auto& [key, one] : nb::borrow<nb::dict>(members)) take_over(one);
  }
}

}  // namespace openrnn::python
