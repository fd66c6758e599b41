// SPDX-License-Identifier: Apache-2.0
// The CPU loops over parts, for files that are compiled for one instruction set each (the rule of
// crypto/aes_wide.h: nothing shared may be instantiated here). W is the widest vector of u32.
#pragma once

#include "threepc/fill.h"
#include "threepc/kernel_set.h"
#include "threepc/sign.h"

namespace privml::threepc {
namespace {

// Erases the secrets a loop leaves on its stack.
template <class W, int kCount>
struct Scratch {
  W rows[kCount];
  ~Scratch() {
    std::memset(static_cast<void*>(rows), 0, sizeof rows);
    __asm__ volatile("" : : "r"(rows) : "memory");
  }
};

template <class W>
void fill_words_loop(const FillJob& job, i64 begin, i64 end) {
  for (i64 super = begin; super < end; ++super)
    for (int quad = 0; quad < kQuads; quad += kQuadsOf<W>) fill_words_part<W>(job, super, quad);
}

template <class W>
void fill_bits_loop(const FillJob& job, i64 begin, i64 end) {
  for (i64 super = begin; super < end; ++super)
    for (int quad = 0; quad < kQuads; quad += kQuadsOf<W>) fill_bits_part<W>(job, super, quad);
}

template <class W>
void fill_field_loop(const FillJob& job, i64 begin, i64 end) {
  for (i64 super = begin; super < end; ++super)
    for (int quad = 0; quad < kQuads; quad += kQuadsOf<W>) fill_field_part<W>(job, super, quad);
}

template <class W, class Field>
void deal_groups(const DealJob& job, i64 begin, i64 end) {
  Scratch<W, 8> scratch;
  for (i64 group = begin; group < end; ++group)
    for (int quad = 0; quad < kQuads; quad += kQuadsOf<W>)
      deal_part<W, Field>(job, {group, quad}, scratch.rows, 1);
}

template <class W, class Field>
void mask_groups(const MaskJob& job, i64 begin, i64 end) {
  Scratch<W, 64 + 8> scratch;
  for (i64 group = begin; group < end; ++group)
    for (int quad = 0; quad < kQuads; quad += kQuadsOf<W>)
      mask_part<W, Field>(job, {group, quad}, scratch.rows, 1);
}

template <class W, class Field>
void open_groups(const OpenJob& job, i64 begin, i64 end) {
  for (i64 group = begin; group < end; ++group)
    for (int quad = 0; quad < kQuads; quad += kQuadsOf<W>) open_part<W, Field>(job, {group, quad});
}

inline bool folds(const SignField& field) { return field.prime == 127 && !field.barrett; }

template <class W>
void deal_loop(const DealJob& job, i64 begin, i64 end) {
  if (folds(job.field)) return deal_groups<W, Mersenne127>(job, begin, end);
  deal_groups<W, Barrett>(job, begin, end);
}

template <class W>
void mask_loop(const MaskJob& job, i64 begin, i64 end) {
  if (folds(job.field)) return mask_groups<W, Mersenne127>(job, begin, end);
  mask_groups<W, Barrett>(job, begin, end);
}

template <class W>
void open_loop(const OpenJob& job, i64 begin, i64 end) {
  if (folds(job.field)) return open_groups<W, Mersenne127>(job, begin, end);
  open_groups<W, Barrett>(job, begin, end);
}

template <class W>
constexpr KernelSet kernel_set() {
  return {fill_words_loop<W>, fill_bits_loop<W>, fill_field_loop<W>,
          deal_loop<W>,       mask_loop<W>,      open_loop<W>};
}

}  // namespace
}  // namespace privml::threepc
