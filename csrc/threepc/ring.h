// SPDX-License-Identifier: Apache-2.0
// Elements of the ring protocols, fused: what a party computes per element between two messages.
// x = m - r modulo 2^bits (callers mask); party 0 adds public terms; r, dealt values and masks are
// this party's additive shares. A result plus its mask is what the parties open as the next m.
// Source: MIZAR, section 2.2.2 (products), Figure 10 with the wrap of m corrected (truncation).
// Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {
namespace {

// x * y, where `dealt` shares r_x * r_y plus the result's mask.
PRIVML_DEVICE u64 product_share(int party, u64 m_x, u64 r_x, u64 m_y, u64 r_y, u64 dealt) {
  return (party == 0 ? m_x * m_y : 0) - m_x * r_y - r_x * m_y + dealt;
}

// b * a for a bit b = m_b ^ r_b, where r_bit and r_product share r_b and r_b * r_a in the ring:
// b = m_b + (1 - 2 m_b) r_b.
PRIVML_DEVICE u64 selection_share(int party, u64 m_b, u64 m_a, u64 r_a, u64 r_bit, u64 r_product,
                                  u64 mask) {
  const u64 known = (party == 0 ? m_a : 0) - r_a;
  const u64 sign = 1 - 2 * m_b;
  return (-m_b & known) + sign * (r_bit * m_a - r_product) + mask;
}

// The bit b = m_b ^ r_b as a ring element.
PRIVML_DEVICE u64 bit_share(int party, u64 m_b, u64 r_bit, u64 mask) {
  return (party == 0 ? m_b : 0) + (1 - 2 * m_b) * r_bit + mask;
}

// x / 2^fraction, off by at most one unit upwards, for |x| < 2^(bits-2), 0 < fraction < bits - 1;
// `high` shares floor(r / 2^fraction), `wrap` shares msb(r) * 2^(bits - fraction).
// With n = m + 2^(bits-2) = (x + 2^(bits-2)) + r and 0 <= x + 2^(bits-2) < 2^(bits-1), n wraps
// exactly where msb(r) = 1 and msb(n) = 0.
PRIVML_DEVICE u64 truncation_share(int party, u64 m, u64 high, u64 wrap, u64 mask, int bits,
                                   int fraction) {
  const u64 ring = bits >= 64 ? ~u64{0} : (u64{1} << bits) - 1;
  const u64 n = (m + (u64{1} << (bits - 2))) & ring;
  const u64 stays = (n >> (bits - 1)) - 1;  // all ones where msb(n) = 0
  const u64 shown = party == 0 ? (n >> fraction) - (u64{1} << (bits - 2 - fraction)) : 0;
  return shown - high + (wrap & stays) + mask;
}

// table[(m - r) mod size], where `dealt` shares the unit vector of r: the sum of
// table[(m - j) mod size] * dealt[j]. `turned` is the table backwards and twice, so that these
// entries lie side by side: turned[i] = table[(size - 1 - i) mod size]. size is a power of two.
PRIVML_DEVICE u64 lookup_share(const u64* turned, int size, u64 m, const u64* dealt) {
  const u64* entries = turned + (size - 1 - static_cast<int>(m & static_cast<u64>(size - 1)));
  u64 sum = 0;
  for (int j = 0; j < size; ++j) sum += entries[j] * dealt[j];
  return sum;
}

}  // namespace
}  // namespace privml::threepc
