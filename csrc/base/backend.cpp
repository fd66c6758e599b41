// SPDX-License-Identifier: Apache-2.0
#include "base/backend.h"

#include "base/cpu.h"

namespace privml {

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
