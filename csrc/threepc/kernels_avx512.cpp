// SPDX-License-Identifier: Apache-2.0
// Loops on sixteen quads, a whole group; compiled with -mavx512f -mavx512bw.
#if defined(__x86_64__)
#include "threepc/loops.h"

namespace privml::threepc {
namespace {

typedef u32 Wide __attribute__((vector_size(64)));

}  // namespace

const KernelSet kAvx512Kernels = kernel_set<Wide>();

}  // namespace privml::threepc
#endif
