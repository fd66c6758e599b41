// SPDX-License-Identifier: Apache-2.0
// Which form of e^x for x <= 0 serves which formats.
#pragma once

#include "functions/fixed/format.h"

namespace privml {

enum class ExponentialForm {
  table,    // exponential.h's exp_negative: arguments of up to 32 bits
  spline,   // exponential_spline.h
  exact,    // exponential_product.h's exp_negative_exact
  product,  // exp_negative_product: its last place may depend on the shares
};

bool has_exponential_form(ExponentialForm form, FixedFormat in, FixedFormat out);

// The one with the fewest bits on the wire of those whose results do not depend on the shares. It
// is chosen by formats alone, with a fixed price of correlations, so that both parties, the plain
// engine and a program's cost agree with every provider. The table if there is none.
ExponentialForm cheapest_exponential_form(FixedFormat in, FixedFormat out);

}  // namespace privml
