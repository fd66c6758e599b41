// SPDX-License-Identifier: Apache-2.0
#include "twopc/xor_to_additive.h"

#include <vector>

#include "base/error.h"
#include "ot/derive.h"
#include "twopc/chunk.h"

namespace privml {
namespace {

// a ^ b = a + b - 2ab: bit i contributes -2^(i + 1) * a_i * b_i, of which width - 1 - i bits count.
void send_bits(Party& party, const std::vector<Block>& q, std::span<const u64> z, int width,
               std::span<u64> out) {
  const i64 n = std::ssize(z);
  std::vector<u64> bit(n), share(n);
  for (int i = 0; i + 1 < width; ++i) {
    for (i64 k = 0; k < n; ++k) bit[k] = (z[k] >> i) & 1;
    additive_send(party, q.data() + i * n, bit, 1, width - 1 - i, share);
    for (i64 k = 0; k < n; ++k) out[k] -= share[k] << (i + 1);
  }
}

void receive_bits(Party& party, const std::vector<Block>& t, const std::vector<u8>& choices, i64 n, int width,
                  std::span<u64> out) {
  std::vector<u64> share(n);
  for (int i = 0; i + 1 < width; ++i) {
    additive_receive(party, t.data() + i * n, {choices.data() + i * n, static_cast<size_t>(n)}, 1,
                     width - 1 - i, share);
    for (i64 k = 0; k < n; ++k) out[k] -= share[k] << (i + 1);
  }
}

void convert_chunk(Party& party, std::span<const u64> z, int width, std::span<u64> out) {
  const i64 n = std::ssize(z), cots = n * (width - 1);
  std::copy(z.begin(), z.end(), out.begin());
  if (party.rank == 0) {
    std::vector<Block> q(cots);
    choose_send(party, q.data(), cots);
    send_bits(party, q, z, width, out);
  } else {
    std::vector<Block> t(cots);
    std::vector<u8> choices(cots);
    for (int i = 0; i + 1 < width; ++i)
      for (i64 k = 0; k < n; ++k) choices[i * n + k] = static_cast<u8>((z[k] >> i) & 1);
    choose_receive(party, choices, t.data());
    receive_bits(party, t, choices, n, width, out);
  }
  for (u64& value : out) value &= low_mask(width);
}

void cost_chunk(CostMeter& meter, i64 n, int width) {
  cost_choose(meter, 0, n * (width - 1));
  i64 bytes = 0;
  for (int i = 0; i + 1 < width; ++i) bytes += packed_bytes(n, width - 1 - i);
  meter.message(0, bytes);
}

}  // namespace

void xor_to_additive(Party& party, std::span<const u64> z, int width, std::span<u64> out) {
  expect(width >= 1 && width <= 64, "xor_to_additive: width must lie in 1..64");
  expect(z.size() == out.size(), "xor_to_additive: lengths differ");
  in_chunks(
      party, std::ssize(z), [&](CostMeter& meter, i64 n) { cost_chunk(meter, n, width); },
      [&](i64 begin, i64 n) { convert_chunk(party, z.subspan(begin, n), width, out.subspan(begin, n)); });
}

void cost_xor_to_additive(CostMeter& meter, i64 count, int width) {
  cost_in_chunks(meter, count, [&](CostMeter& inner, i64 n) { cost_chunk(inner, n, width); });
}

}  // namespace privml
