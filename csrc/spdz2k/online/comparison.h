// SPDX-License-Identifier: Apache-2.0
// Signs, order and equality with zero of shared numbers, taken mod 2^width.
//
// Functionality  most_significant_bit: out[i] = bit width-1 of x[i], the sign in two's complement.
//                less_than: out[i] = [x[i] < y[i]] of signed numbers. Range::restricted needs
//                |x - y| < 2^(width-1), as for both within 2^(width-2), and is wrong beyond;
//                Range::full is right for all.
//                equal_zero: out[i] = [x[i] = 0]; two numbers are equal if their difference is.
//                The functions named _bits have shared bits as results, the others numbers.
// Method         c = x + r is opened for a random r of which the bits are shared. The highest bit
//                is that of c - r: c's, r's and the borrow [c' < r'] of the positions below
//                (bit_less_than.h). x is zero if all bits of c and r agree: a tree of products.
// Leakage        none: c is uniform.
// Cost           edabits(width) and width opened bits, then a comparison of width-1 bits (30 bytes
//                from each party for 64 bits), or width-1 products of bits in ceil(log2(width)) + 1
//                exchanges (24 bytes). less_than: one most significant bit, in the full range three
//                and one product of bits. As numbers 1 opened bit, one exchange and one random bit
//                more. In parts of kComparisons.
// Source         "New primitives", section IV-C and Figs. 6 and 7, with the highest bit left as a
//                shared bit.
#pragma once

#include "spdz2k/shares/side.h"

namespace privml::spdz2k {

// All take 1 <= width <= k and throw InvalidArgument otherwise and if lengths differ.
template <class R>
void most_significant_bit(Side<R> side, WordView<R> x, int width, BitSpan<R> out);

enum class Range { restricted, full };

template <class R>
void less_than_bits(Side<R> side, WordView<R> x, WordView<R> y, int width, Range range,
                    BitSpan<R> out);

template <class R>
void less_than(Side<R> side, WordView<R> x, WordView<R> y, int width, Range range, WordSpan<R> out);

template <class R>
void equal_zero_bits(Side<R> side, WordView<R> x, int width, BitSpan<R> out);

template <class R>
void equal_zero(Side<R> side, WordView<R> x, int width, WordSpan<R> out);

}  // namespace privml::spdz2k
