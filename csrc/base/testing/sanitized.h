// SPDX-License-Identifier: Apache-2.0
// Whether tests run under AddressSanitizer, with which they take about ten times as long. Tests of
// many numbers or many alterations then take a part of them; the release build runs them all.
#pragma once

namespace privml::testing {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace privml::testing
