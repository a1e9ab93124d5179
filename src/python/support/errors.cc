#include "python/support/common.h"

namespace openrnn::python {
namespace {

// As errors.py gives them; null until it has.
enum Class { kArgument, kState, kNotConnected, kUnsupported, kEngine, kIo, kFormat, kClasses };
std::array<PyObject*, kClasses> classes{};

PyObject* class_of(Class which, PyObject* base) { return classes[which] ? classes[which] : base; }

void translate(const std::exception_ptr& thrown, void*) {
  const auto raise = [](Class which, PyObject* base, const std::exception& error) {
    PyErr_SetString(class_of(which, base), error.what());
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const ArgumentError& error) {
    raise(kArgument, PyExc_ValueError, error);
  } catch (const TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const StateError& error) {
    raise(kState, PyExc_RuntimeError, error);
  } catch (const NotConnectedError& error) {
    raise(kNotConnected, PyExc_AttributeError, error);
  } catch (const UnsupportedError& error) {
    raise(kUnsupported, PyExc_NotImplementedError, error);
  } catch (const EngineError& error) {
    raise(kEngine, PyExc_RuntimeError, error);
  } catch (const IoError& error) {
    raise(kIo, PyExc_OSError, error);
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError,
                    "[call] an argument is of a type that it cannot take, expected another");
  } catch (const std::bad_alloc& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const FormatError& error) {
    raise(kFormat, PyExc_ValueError, error);
  }
}

}  // namespace

void bind_errors(nb::module_& m) {
  nb::register_exception_translator(translate);
  m.def(
      "set_error_classes",
      [](const nb::tuple& given) {
        for (std::size_t i = 0; i < kClasses; ++i)
          classes[i] = nb::object(given[i]).release().ptr();
      },
      "classes"_a, nb::sig("def set_error_classes(classes: tuple[type[Exception], ...]) -> None"));
}

}  // namespace openrnn::python
