// The Python object of a communicator.
#pragma once

#include "openrnn/train_communicator.h"
#include "python/support/convert.h"
#include "train/group/group.h"

namespace openrnn::python {

/// A share of a communicator of any kind.
struct CommunicatorRef {
  std::shared_ptr<train::Communicator> core;
};

/// Null for None.
std::shared_ptr<train::Communicator> as_communicator(nb::handle value);

/// The group of a fit(), which its caller holds; null for None.
std::shared_ptr<train::Group> as_group(nb::handle value);

}  // namespace openrnn::python
