// SPDX-License-Identifier: Apache-2.0
// Instruction sets that matrix products, plain and of ciphertexts, have loops for.
#pragma once

namespace privml {

// avx2 has fused multiply-adds (FMA), too; avx512 is its parts F and DQ.
enum class Backend { portable, avx2, avx512 };

bool backend_supported(Backend backend);  // by this processor
Backend best_backend();                   // of those, within the limit of base/cpu.h

}  // namespace privml
