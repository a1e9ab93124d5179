// Checks an error's type and its whole message.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace openrnn {

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
