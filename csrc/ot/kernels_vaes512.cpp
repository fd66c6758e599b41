// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "crypto/wide.h"
#include "ot/half_tree_wide.h"
#include "ot/lpn_wide.h"
#include "ot/vole_wide.h"

namespace privml {

constexpr int kStates = 16;
const OtKernels kOtKernelsVaes512{grow_wide<Wide512>, patch_wide<Wide512>, add_rows_wide<Wide512>,
                                  expand_wide<Wide512, kStates>};

}  // namespace privml
#endif
