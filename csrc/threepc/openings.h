// SPDX-License-Identifier: Apache-2.0
// What a party computes on either side of a message that opens or deals ring elements, each as one
// call; privml/engines/threepc/party.py has what they are for. All arrays are the caller's; every
// function throws InvalidArgument for `bits` that are not 1 to 64.
#pragma once

#include "base/types.h"
#include "threepc/kernels.h"

namespace privml::threepc {

// The uniform words of a key from block `counter` on, as fill_words makes them.
struct KeyPlace {
  const u32* key;
  u64 counter;
};

// Parties 0 and 1: mask = the key's words, masked = part + mask, wire = its low bits, packed.
void mask_words(KeyPlace place, const u64* part, i64 count, int bits, u64* mask, u64* masked,
                u8* wire, int threads);

// Party 2: the low bits of values - the key's words, packed.
void deal_packed(KeyPlace place, const u64* values, i64 count, int bits, u8* wire, int threads);

// sums = words + what was packed in wire.
void add_packed(const u64* words, const u8* wire, i64 count, int bits, u64* sums);

}  // namespace privml::threepc
