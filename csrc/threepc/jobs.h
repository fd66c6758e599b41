// SPDX-License-Identifier: Apache-2.0
// What the kernels work on: plain records of pointers and public numbers, the same on every device.
// Keys are 8 little-endian words of 32 bits. A list has `count` elements in the layout of rows.h.
// Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {

struct FillJob {
  const u32* key;
  u64 counter;
  i64 count;
  int bits;            // words: of a ring element, 1..64
  u32 modulus;         // field: 1..128
  const i64* minuend;  // words: null or `count` words
  i64* words;          // words
  u8* bytes;           // bits, field
};

// The field of a sign-bit extraction: prime > bits, at most 127; width = ceil(log2 prime).
struct SignField {
  int bits;
  u32 prime;
  int width;
  bool barrett;  // Barrett's reduction even if prime is 127
};

struct DealJob {
  SignField field;
  const i64* r;  // party 2's masks
  i64 count;
  const u32* key;  // common to parties 1 and 2
  u64 counter;
  u8* out;  // bits - 1 rows: party 0's shares
};

struct MaskJob {
  SignField field;
  int party;           // 0 or 1
  const i64* m;        // public to parties 0 and 1
  const u8* delta;     // common random bits
  const u8* rotation;  // common random numbers below `bits`
  i64 count;
  const u8* dealt;      // party 0: what was dealt
  const u32* deal_key;  // party 1: key and counter of the deal
  u64 deal_counter;
  const u32* mask_key;  // common to parties 0 and 1
  u64 mask_counter;
  u8* out;  // `bits` rows
};

struct OpenJob {
  SignField field;
  const u8* first;  // `bits` rows each: the lists of parties 0 and 1
  const u8* second;
  i64 count;
  u8* out;  // 1 if some entry is zero
};

// Where one group's part lies; a CUDA thread or a vector has one.
struct Part {
  i64 group;
  int quad;
};

}  // namespace privml::threepc
