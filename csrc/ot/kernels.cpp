// SPDX-License-Identifier: Apache-2.0
#include "ot/kernels.h"

namespace privml::ot {

const OtKernels* ot_kernels([[maybe_unused]] crypto::AesBackend backend) {
#if defined(__x86_64__)
  if (backend == crypto::AesBackend::aesni) return &kOtKernelsAesni;
  if (backend == crypto::AesBackend::avx2) return &kOtKernelsAvx2;
  if (backend == crypto::AesBackend::vaes256) return &kOtKernelsVaes256;
  if (backend == crypto::AesBackend::vaes512) return &kOtKernelsVaes512;
#elif defined(__aarch64__)
  if (backend == crypto::AesBackend::neon) return &kOtKernelsNeon;
#endif
  return nullptr;
}

}  // namespace privml::ot
