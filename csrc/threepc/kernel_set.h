// SPDX-License-Identifier: Apache-2.0
// What each instruction set contributes: loops over super-blocks (fill) or groups [begin, end).
// Call one only if the processor supports it.
#pragma once

#include "threepc/jobs.h"

namespace privml::threepc {

struct KernelSet {
  void (*fill_words)(const FillJob&, i64 begin, i64 end);
  void (*fill_bits)(const FillJob&, i64 begin, i64 end);
  void (*fill_field)(const FillJob&, i64 begin, i64 end);
  void (*deal)(const DealJob&, i64 begin, i64 end);
  void (*mask)(const MaskJob&, i64 begin, i64 end);
  void (*open)(const OpenJob&, i64 begin, i64 end);
};

extern const KernelSet kPortableKernels;
extern const KernelSet kAvx2Kernels;    // x86-64 only
extern const KernelSet kAvx512Kernels;  // x86-64 only

}  // namespace privml::threepc
