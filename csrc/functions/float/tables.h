// SPDX-License-Identifier: Apache-2.0
// The tables that scripts/make_float_tables.py writes; their files say what they hold.
#pragma once

#include "functions/float/spline.h"

namespace privml::floating {

inline constexpr std::int32_t kSineTable[] = {
#include "functions/float/tables/sine.inc"
};
inline constexpr std::int32_t kTangentTable[] = {
#include "functions/float/tables/tangent.inc"
};
inline constexpr std::int32_t kReciprocalTable[] = {
#include "functions/float/tables/reciprocal.inc"
};
inline constexpr std::int32_t kExponentialOfTwoTable[] = {
#include "functions/float/tables/exponential_of_two.inc"
};
inline constexpr std::int32_t kExponentialTable[] = {
#include "functions/float/tables/exponential.inc"
};
inline constexpr std::int32_t kLogarithmOfTwoTable[] = {
#include "functions/float/tables/logarithm_of_two.inc"
};
inline constexpr std::int32_t kLogarithmTable[] = {
#include "functions/float/tables/logarithm.inc"
};
inline constexpr std::int32_t kInverseRootTable[] = {
#include "functions/float/tables/inverse_root.inc"
};
inline constexpr std::int32_t kTanhTable[] = {
#include "functions/float/tables/tanh.inc"
};
inline constexpr std::int32_t kErfTable[] = {
#include "functions/float/tables/erf.inc"
};
inline constexpr std::int32_t kLogisticTable[] = {
#include "functions/float/tables/logistic.inc"
};
inline constexpr std::int32_t kGeluTable[] = {
#include "functions/float/tables/gelu.inc"
};

inline constexpr Spline kSine{7, 21, 2, kSineTable};
inline constexpr Spline kTangent{8, 21, 2, kTangentTable};
inline constexpr Spline kReciprocal{8, 20, 2, kReciprocalTable};
inline constexpr Spline kExponentialOfTwo{6, 22, 2, kExponentialOfTwoTable};
inline constexpr Spline kExponential{7, 21, 2, kExponentialTable};
inline constexpr Spline kLogarithmOfTwo{8, 16, 2, kLogarithmOfTwoTable};
inline constexpr Spline kLogarithm{8, 16, 2, kLogarithmTable};
inline constexpr Spline kInverseRoot{8, 16, 2, kInverseRootTable};
inline constexpr Spline kTanhSpline{10, 18, 3, kTanhTable};
inline constexpr Spline kErfSpline{9, 18, 3, kErfTable};
inline constexpr Spline kLogistic{10, 25, 4, kLogisticTable};
inline constexpr Spline kGelu{10, 23, 3, kGeluTable};

}  // namespace privml::floating
