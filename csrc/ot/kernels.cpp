// SPDX-License-Identifier: Apache-2.0
#include "ot/kernels.h"

namespace privml::ot {

const OtKernels* ot_kernels([[maybe_unused]] crypto::AesBackend backend) {
#if defined(__x86_64__)
  switch (backend) {
    case crypto::AesBackend::portable:
      return nullptr;
    case crypto::AesBackend::aesni:
      return &kOtKernelsAesni;
    case crypto::AesBackend::avx2:
      return &kOtKernelsAvx2;
    case crypto::AesBackend::vaes256:
      return &kOtKernelsVaes256;
    case crypto::AesBackend::vaes512:
      return &kOtKernelsVaes512;
  }
#endif
  return nullptr;
}

}  // namespace privml::ot
