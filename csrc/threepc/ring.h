// SPDX-License-Identifier: Apache-2.0
// Elements of the ring protocols, fused: what party 0 or 1 computes per element before an opening.
// x = m - r modulo 2^bits (callers mask); party 0 adds public terms; r and dealt values are this
// party's additive shares, and so is the result.
// Source: MIZAR, section 2.2.2 and Table 2. Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {
namespace {

// b * a for a bit b = m_b ^ r_b, where r_bit and r_product share r_b and r_b * r_a in the ring:
// b = m_b + (1 - 2 m_b) r_b.
PRIVML_DEVICE u64 selection_share(int party, u64 m_b, u64 m_a, u64 r_a, u64 r_bit, u64 r_product) {
  const u64 known = (party == 0 ? m_a : 0) - r_a;
  const u64 sign = 1 - 2 * m_b;
  return (-m_b & known) + sign * (r_bit * m_a - r_product);
}

// The bit b = m_b ^ r_b as a ring element.
PRIVML_DEVICE u64 bit_share(int party, u64 m_b, u64 r_bit) {
  return (party == 0 ? m_b : 0) + (1 - 2 * m_b) * r_bit;
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
