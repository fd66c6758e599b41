// SPDX-License-Identifier: Apache-2.0
// How wide the instructions may be that kernels use which are chosen at run time: a limit below the
// processor's own, for tests and measurements. What base/multiversion.h compiles ignores it. And
// the instruction sets that matrix products, plain and of ciphertexts, have loops for.
#pragma once

#include <string_view>

namespace privml {

// Each includes those before it: no extension; AES-NI, PCLMULQDQ, SSE4.1, or Arm's AES; AVX2; VAES,
// VPCLMULQDQ and GFNI on 256 bits; AVX-512.
enum class CpuLevel { portable, aesni, avx2, vaes, avx512 };

// The level of that name, as enumerated. Throws InvalidArgument for any other.
CpuLevel cpu_level_of(std::string_view name);

// The limit: PRIVML_CPU of the environment as it is at the first call, else none. Throws
// InvalidArgument if that is no level's name.
CpuLevel cpu_limit();

// Whether kernels of `level` may be used; the processor may lack its instructions all the same.
inline bool cpu_allows(CpuLevel level) { return level <= cpu_limit(); }

// avx2 has fused multiply-adds (FMA), too; avx512 is its parts F and DQ.
enum class Backend { portable, avx2, avx512 };

bool backend_supported(Backend backend);  // by this processor
Backend best_backend();                   // of those, within the limit

}  // namespace privml
