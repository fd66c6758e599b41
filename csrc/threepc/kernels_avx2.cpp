// SPDX-License-Identifier: Apache-2.0
// Loops on eight quads; compiled with -mavx2.
#if defined(__x86_64__)
#include "threepc/loops.h"

namespace privml::threepc {
namespace {

typedef u32 Wide __attribute__((vector_size(32)));

}  // namespace

const KernelSet kAvx2Kernels = kernel_set<Wide>();

}  // namespace privml::threepc
#endif
