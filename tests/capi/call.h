// Errors across the C boundary: a call gives null, or "TypeName: message".
#pragma once

#include <exception>
#include <string>

#include "openrnn/base.h"

namespace openrnn::testapi {

/// "ArgumentError: [call] ..." of the exception being handled; lives until the thread's next call.
inline const char* current_error() {
  thread_local std::string text;
  const auto named = [](const char* type, const std::exception& error) {
    text = std::string(type) + ": " + error.what();
    return text.c_str();
  };
  try {
    throw;
  } catch (const ArgumentError& error) {
    return named("ArgumentError", error);
  } catch (const TypeError& error) {
    return named("TypeError", error);
  } catch (const StateError& error) {
    return named("StateError", error);
  } catch (const UnsupportedError& error) {
    return named("UnsupportedError", error);
  } catch (const EngineError& error) {
    return named("EngineError", error);
  } catch (const std::exception& error) {
    return named("exception", error);
  } catch (...) {
    text = "exception: not of std::exception";
    return text.c_str();
  }
}

/// Runs `body`; null when it returns.
template <class Body>
const char* call(Body&& body) {
  try {
    body();
    return nullptr;
  } catch (...) {
    return current_error();
  }
}

}  // namespace openrnn::testapi
