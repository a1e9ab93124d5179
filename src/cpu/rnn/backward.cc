#include "cpu/rnn/call.h"
namespace openrnn::cpu {
template <class T>
void backward_call(const CpuSaved<T>&, const BackwardArgs&) {}
template void backward_call<float>(const CpuSaved<float>&, const BackwardArgs&);
template void backward_call<double>(const CpuSaved<double>&, const BackwardArgs&);
}  // namespace openrnn::cpu
