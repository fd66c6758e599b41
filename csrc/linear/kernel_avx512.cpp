// SPDX-License-Identifier: Apache-2.0
// Lane products of 64 bits are one instruction (vpmullq), which runs twice a cycle on Zen 5, as
// IFMA's and the 32-bit ones do: decompositions into narrower products lose there.
#if defined(__x86_64__)
#include "linear/kernel_vector.h"

namespace privml::linear {

template <>
Kernels<u32> avx512_kernels() {
  return vector_kernels<u32, 64, 3>(std::make_integer_sequence<int, 8>{});
}
template <>
Kernels<u64> avx512_kernels() {
  return vector_kernels<u64, 64, 3>(std::make_integer_sequence<int, 8>{});
}

}  // namespace privml::linear
#endif
