#include "cpu/threading/subnormals.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace openrnn::cpu {

#if defined(__x86_64__)
// Round to nearest, every exception masked, flush to zero (0x8000) and subnormals are zero (0x40).
FlushSubnormals::FlushSubnormals() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(0x9FC0u); }
FlushSubnormals::~FlushSubnormals() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
// FZ is bit 24 of the control register; all others as after a reset.
FlushSubnormals::FlushSubnormals() noexcept {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{1} << 24));
}
FlushSubnormals::~FlushSubnormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
FlushSubnormals::FlushSubnormals() noexcept : saved_(0) {}
FlushSubnormals::~FlushSubnormals() { static_cast<void>(saved_); }
#endif

}  // namespace openrnn::cpu
