// SPDX-License-Identifier: Apache-2.0
// Instruction sets that lattice-based products have loops for.
#pragma once

namespace privml::lattice {

enum class Backend { portable, avx2, avx512 };

bool backend_supported(Backend backend);
Backend best_backend();  // of this processor

}  // namespace privml::lattice
