// DLPack, in and out.
#pragma once

#include "python/support/common.h"

namespace openrnn::python {

/// (type, ordinal) as DLPack numbers devices. Throws: StateError where it has no number for it.
std::pair<int, int> dlpack_device(const Device& device);

/// A tensor over the memory of anything with __dlpack__, which it keeps alive: on its GPU, or host
/// data. Nothing when the memory is neither row-major nor of a dtype that the library has.
std::optional<Tensor> view_of_dlpack(nb::handle value);
/// The same of what lies on a GPU; nothing for anything else.
std::optional<Tensor> view_of_gpu_array(nb::handle value);

/// What __dlpack__ is asked for; None as the array API standard says.
struct DlpackRequest {
  nb::handle stream, max_version, dl_device, copy;
};
/// A capsule of the tensor's memory. Throws: ArgumentError for a stream or a device that cannot be;
/// Python's BufferError for `copy` False where there must be one.
nb::object to_dlpack(const Tensor& tensor, const DlpackRequest& request);

}  // namespace openrnn::python
