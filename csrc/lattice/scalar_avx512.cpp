// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "lattice/scalar_loops.h"

namespace privml::lattice {

const ScalarKernels& avx512_scalars() {
  static constexpr ScalarKernels kernels =
      ScalarLoops<8, 2>::kernels(std::make_integer_sequence<int, 12>{});
  return kernels;
}

}  // namespace privml::lattice
#endif
