// SPDX-License-Identifier: Apache-2.0
#if defined(__aarch64__)
#include "crypto/wide.h"
#include "ot/half_tree_wide.h"
#include "ot/lpn_wide.h"
#include "ot/vole_wide.h"

namespace privml::ot {

constexpr int kStates = 8;
const OtKernels kOtKernelsNeon{grow_wide<crypto::Wide128>, patch_wide<crypto::Wide128>,
                               add_rows_wide<crypto::Wide128>,
                               expand_wide<crypto::Wide128, kStates>};

}  // namespace privml::ot
#endif
