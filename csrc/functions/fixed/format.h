// SPDX-License-Identifier: Apache-2.0
// Fixed-point formats of the mathematical functions.
//
// A number of `bits` bits in two's complement means v / 2^scale. Secret numbers are additive
// shares in Z_{2^bits}, clear numbers signed words. The input and the output of a function each
// have a format.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "base/types.h"

namespace privml::fixed {

struct FixedFormat {
  int bits = 64;
  int scale = 0;
  friend bool operator==(FixedFormat, FixedFormat) = default;
};

// Throws InvalidArgument unless 2 <= bits <= most_bits and 0 <= scale <= bits - 2, so that 1.0 is a
// number of the format. `what` names the format in the message.
inline void expect_format(FixedFormat format, int most_bits, const std::string& what) {
  const auto refuse = [&](const std::string& range) { throw InvalidArgument(what + ": " + range); };
  if (format.bits < 2 || format.bits > most_bits)
    refuse("bits must lie in 2.." + std::to_string(most_bits));
  if (format.scale < 0 || format.scale > format.bits - 2) refuse("scale must lie in 0..bits-2");
}

// Both formats of a function whose intermediate values fit 64 bits for formats of up to
// `most_bits`.
inline void expect_formats(FixedFormat in, FixedFormat out, const std::string& function,
                           int most_bits = 32) {
  expect_format(in, most_bits, function + ", input format");
  expect_format(out, most_bits, function + ", output format");
}

}  // namespace privml::fixed
