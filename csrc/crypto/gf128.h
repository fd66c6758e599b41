// SPDX-License-Identifier: Apache-2.0
// The field of 2^128 elements: bit i of a block is the coefficient of X^i modulo
// X^128 + X^7 + X^2 + X + 1. Sums are exclusive ors.
//
// Inner products with random coefficients are the universal hash of consistency checks: F_2-linear,
// and two different vectors collide with probability 2^-128 over uniform coefficients.
#pragma once

#include "crypto/block.h"

namespace privml::crypto {

// A product before reduction: 255 bits. Products may be summed and reduced once.
struct WideProduct {
  Block low;
  Block high;
  constexpr WideProduct& operator^=(const WideProduct& other) {
    low ^= other.low;
    high ^= other.high;
    return *this;
  }
};

Block gf128_reduce(const WideProduct& product);
Block gf128_multiply(Block a, Block b);

// sums[r] ^= sum_j rows[r * stride + j] * coefficients[j] for `row_count` rows of `count` blocks.
// Constant time, with the widest instructions the machine has.
void gf128_inner_products(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                          i64 count, WideProduct* sums);

// The instruction set that it uses.
const char* gf128_kernel();

// The same with each instruction set: `pmull` exists on 64-bit Arm only, the other ones of hardware
// on x86-64 only. `vpclmul256` and
// `vpclmul512` do two and four blocks at a time and return how many of `count` they have done.
namespace gf128 {
void products_portable(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                       i64 count, WideProduct* sums);
void products_pmull(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                    i64 count, WideProduct* sums);
void products_pclmul(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                     i64 count, WideProduct* sums);
i64 products_vpclmul256(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                        i64 count, WideProduct* sums);
i64 products_vpclmul512(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                        i64 count, WideProduct* sums);
bool pmull_supported();
bool pclmul_supported();
bool vpclmul256_supported();
bool vpclmul512_supported();
}  // namespace gf128

}  // namespace privml::crypto
