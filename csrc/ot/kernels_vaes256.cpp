// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "crypto/wide.h"
#include "ot/half_tree_wide.h"
#include "ot/lpn_wide.h"
#include "ot/vole_wide.h"

namespace privml {

constexpr int kStates = 8;
const OtKernels kOtKernelsVaes256{grow_wide<Wide256>, patch_wide<Wide256>, add_rows_wide<Wide256>,
                                  expand_wide<Wide256, kStates>};

}  // namespace privml
#endif
