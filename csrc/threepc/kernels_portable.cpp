// SPDX-License-Identifier: Apache-2.0
// Loops on four quads, 128-bit vectors if the compiler has them.
#include "threepc/loops.h"

namespace privml::threepc {
namespace {

typedef u32 Wide __attribute__((vector_size(16)));

}  // namespace

const KernelSet kPortableKernels = kernel_set<Wide>();

}  // namespace privml::threepc
