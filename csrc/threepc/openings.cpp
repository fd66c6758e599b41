// SPDX-License-Identifier: Apache-2.0
#include "threepc/openings.h"

#include <memory>

#include "base/pack.h"

namespace privml::threepc {

void mask_words(KeyPlace place, const u64* part, i64 count, int bits, u64* mask, u64* masked,
                u8* wire, int threads) {
  fill_words(
      {place.key, place.counter, count, bits, 0, nullptr, reinterpret_cast<i64*>(mask), nullptr},
      {threads});
  for (i64 i = 0; i < count; ++i) masked[i] = part[i] + mask[i];
  pack(masked, count, bits, wire);
}

void deal_packed(KeyPlace place, const u64* values, i64 count, int bits, u8* wire, int threads) {
  const std::unique_ptr<i64[]> part(new i64[count]);  // not zeroed: it is written at once
  fill_words({place.key, place.counter, count, bits, 0, reinterpret_cast<const i64*>(values),
              part.get(), nullptr},
             {threads});
  pack(reinterpret_cast<const u64*>(part.get()), count, bits, wire);
}

void add_packed(const u64* words, const u8* wire, i64 count, int bits, u64* sums) {
  unpack(wire, count, bits, sums);
  for (i64 i = 0; i < count; ++i) sums[i] += words[i];
}

}  // namespace privml::threepc
