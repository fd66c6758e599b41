// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace privml {
namespace {

TEST(CpuLimit, HasAName) {
  EXPECT_EQ(cpu_level_of("portable"), CpuLevel::portable);
  EXPECT_EQ(cpu_level_of("vaes"), CpuLevel::vaes);
  EXPECT_EQ(cpu_level_of("avx512"), CpuLevel::avx512);
  for (const char* name : {"", "avx", "AVX2", "avx512 "})
    EXPECT_THROW(cpu_level_of(name), InvalidArgument) << name;
}

TEST(CpuLimit, IsThatOfTheEnvironment) {
  const char* name = std::getenv("PRIVML_CPU");
  const bool limited = name != nullptr && *name != '\0';
  const CpuLevel limit = limited ? cpu_level_of(name) : CpuLevel::avx512;
  EXPECT_EQ(cpu_limit(), limit);
  EXPECT_TRUE(cpu_allows(CpuLevel::portable));
  EXPECT_EQ(cpu_allows(CpuLevel::avx2), limit >= CpuLevel::avx2);
}

TEST(CpuLimit, HoldsForTheLoopsOfProducts) {
  EXPECT_TRUE(backend_supported(Backend::portable));
  EXPECT_TRUE(backend_supported(best_backend()));
  EXPECT_TRUE(cpu_allows(CpuLevel::avx512) || best_backend() != Backend::avx512);
  EXPECT_TRUE(cpu_allows(CpuLevel::avx2) || best_backend() == Backend::portable);
}

}  // namespace
}  // namespace privml
