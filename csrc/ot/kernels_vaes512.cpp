// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "crypto/wide.h"
#include "ot/half_tree_wide.h"
#include "ot/lpn_wide.h"
#include "ot/vole_wide.h"

namespace privml::ot {

constexpr int kStates = 16;
const OtKernels kOtKernelsVaes512{grow_wide<crypto::Wide512>, patch_wide<crypto::Wide512>,
                                  add_rows_wide<crypto::Wide512>,
                                  expand_wide<crypto::Wide512, kStates>};

}  // namespace privml::ot
#endif
