// SPDX-License-Identifier: Apache-2.0
#include "linear/kernels.h"

#include "base/error.h"
#include "linear/kernel_vector.h"

namespace privml::linear {

template <>
Kernels<u32> portable_kernels() {
  return vector_kernels<u32, 16, 2>(std::make_integer_sequence<int, 4>{});
}
template <>
Kernels<u64> portable_kernels() {
  return vector_kernels<u64, 16, 2>(std::make_integer_sequence<int, 4>{});
}

template <class Word>
Kernels<Word> kernels_of(Backend backend) {
  expect(backend_supported(backend), "this processor does not support the backend");
#if defined(__x86_64__)
  if (backend == Backend::avx512) return avx512_kernels<Word>();
  if (backend == Backend::avx2) return avx2_kernels<Word>();
#endif
  return portable_kernels<Word>();
}
template Kernels<u32> kernels_of(Backend backend);
template Kernels<u64> kernels_of(Backend backend);

}  // namespace privml::linear
