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

bool backend_supported(Backend backend) {
#if defined(__x86_64__)
  if (backend == Backend::avx2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (backend == Backend::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
#endif
  return backend == Backend::portable;
}

Backend best_backend() {
  const auto usable = [](Backend backend, CpuLevel level) {
    return cpu_allows(level) && backend_supported(backend);
  };
  static const Backend best = usable(Backend::avx512, CpuLevel::avx512) ? Backend::avx512
                              : usable(Backend::avx2, CpuLevel::avx2)   ? Backend::avx2
                                                                        : Backend::portable;
  return best;
}

}  // namespace privml
