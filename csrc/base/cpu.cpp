// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"

namespace privml {

CpuLevel cpu_level_of(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"portable", "aesni", "avx2", "vaes", "avx512"};
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  expect(found != kNames.end(), "PRIVML_CPU must be portable, aesni, avx2, vaes or avx512");
  return static_cast<CpuLevel>(found - kNames.begin());
}

CpuLevel cpu_limit() {
  static const CpuLevel limit = [] {
    const char* name = std::getenv("PRIVML_CPU");
    return name == nullptr || *name == '\0' ? CpuLevel::avx512 : cpu_level_of(name);
  }();
  return limit;
}

}  // namespace privml
