// The type and the whole message of what a call throws.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "openrnn/base.h"

namespace openrnn {

/// The message of the error that `call` throws; empty when it throws none. Errors of other types
/// pass.
template <class Exception = Error, class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return {};
}

template <class Exception, class Call>
void expect_error(Call call, const std::string& expected) {
  try {
    call();
    ADD_FAILURE() << "expected an error that says: " << expected;
  } catch (const Exception& error) {
    EXPECT_EQ(std::string(error.what()), expected);
  }
}

}  // namespace openrnn
