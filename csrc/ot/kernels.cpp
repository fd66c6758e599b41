// SPDX-License-Identifier: Apache-2.0
#include "ot/kernels.h"

namespace privml {

const OtKernels* ot_kernels([[maybe_unused]] AesBackend backend) {
#if defined(__x86_64__)
  switch (backend) {
    case AesBackend::portable:
      return nullptr;
    case AesBackend::aesni:
      return &kOtKernelsAesni;
    case AesBackend::vaes256:
      return &kOtKernelsVaes256;
    case AesBackend::vaes512:
      return &kOtKernelsVaes512;
  }
#endif
  return nullptr;
}

}  // namespace privml
