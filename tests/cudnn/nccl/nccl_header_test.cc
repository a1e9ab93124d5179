// What is written of NCCL's types here, against its own header where this machine has it.
#include <gtest/gtest.h>

#include <cstddef>

#include "cudnn/load/nccl_api.h"
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace openrnn::cudnn {
namespace {

TEST(NcclHeader, HasTheseTypesAndNumbers) {
#ifdef NCCL_MAJOR
  static_assert(sizeof(ncclUniqueId) == sizeof(NcclUniqueId));
  static_assert(sizeof(ncclConfig_t) >= sizeof(NcclConfig));
  static_assert(offsetof(ncclConfig_t, magic) == offsetof(NcclConfig, magic));
  static_assert(offsetof(ncclConfig_t, version) == offsetof(NcclConfig, version));
  static_assert(offsetof(ncclConfig_t, blocking) == offsetof(NcclConfig, blocking));
  constexpr ncclConfig_t kTheirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(kTheirs.magic, NcclConfig{}.magic);
  EXPECT_EQ(NCCL_VERSION(2, 14, 0), static_cast<int>(NcclConfig{}.version));
  EXPECT_EQ(ncclSuccess, static_cast<int>(NcclResult::kSuccess));
  EXPECT_EQ(ncclInvalidUsage, static_cast<int>(NcclResult::kInvalidUsage));
  EXPECT_EQ(ncclRemoteError, static_cast<int>(NcclResult::kRemoteError));
  EXPECT_EQ(ncclInProgress, static_cast<int>(NcclResult::kInProgress));
  EXPECT_EQ(ncclUint8, static_cast<int>(NcclType::kUint8));
  EXPECT_EQ(ncclFloat32, static_cast<int>(NcclType::kFloat32));
  EXPECT_EQ(ncclFloat64, static_cast<int>(NcclType::kFloat64));
  EXPECT_EQ(ncclSum, static_cast<int>(NcclOp::kSum));
#else
  GTEST_SKIP() << "no header of NCCL on this machine";
#endif
}

}  // namespace
}  // namespace openrnn::cudnn
