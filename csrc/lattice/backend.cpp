// SPDX-License-Identifier: Apache-2.0
#include "lattice/backend.h"

namespace privml::lattice {

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
  static const Backend best = backend_supported(Backend::avx512) ? Backend::avx512
                              : backend_supported(Backend::avx2) ? Backend::avx2
                                                                 : Backend::portable;
  return best;
}

}  // namespace privml::lattice
