// SPDX-License-Identifier: Apache-2.0
// The sign bit of x = m - r (mod 2^bits), if parties 0 and 1 know m and party 2 knows r.
// With r~ = r - 1 = NOT(-r), the carry of m^ + (-r)^ on the low bits - 1 bits is [m^ > r~^]; it is
// bit m^_xi at the most significant place xi where m^ and r~^ differ, places counted from the top
// and padded by (m^, r~^) = (0, 1). Then sign(x) = msb(m) ^ msb(-r) ^ m^_xi.
//   deal   party 2: shares of the bits of r~^ over F_p; party 1's come from a common key.
//   mask   parties 0, 1: s_i = m^_i ^ r~_i, t_i = s_0 + ... + s_(i-1) - s_i + 1 (zero at xi alone),
//          v_i = w_i (t_i + (msb(m) ^ m^_i ^ delta)), rotated, +rho at party 0, -rho at party 1.
//   open   party 2: z = some v_i is zero; msb(-r) ^ not z = sign(x) ^ delta.
// All of w, rho, delta and the rotation are common to parties 0 and 1 and fresh for every use.
// Only party 0 adds public terms. t_i + bit <= bits < p, so nothing wraps.
//
// Leakage: none. What party 2 sees depends on z alone, and z is uniform because delta is:
//   (1) The two lists of shares. rho_i is uniform over F_p and used once, so given the sums v_i the
//       pair ([v_i]_0 + rho_i, [v_i]_1 - rho_i) is a uniform pair with that sum, independent of
//       all else. (Without rho their ratio would cancel w_i, and party 2, which dealt r~, would
//       learn x.)
//   (2) The values. If t_i + bit is not zero, v_i is uniform over F_p without 0 because w_i is,
//       independently of everything. At most one entry is zero: place xi, where t_i is.
//   (3) The order. By (2) only the place of the zero could reveal anything, so the permutation
//   needs
//       to be uniform on places, not on arrangements: a rotation by a uniform number of places
//       sends xi to a uniform place, and leaves independent, identically distributed entries.
// Messages carry canonical elements; 127 in place of 0 would reveal how a sum came about.
// Source: MIZAR, Figures 3 and 4, corrected: r~ for 2^(l-1) - r^ (right for r^ = 0 too), one party
// adds public terms, shares are re-randomised. Device header.
#pragma once

#include "threepc/field.h"
#include "threepc/jobs.h"
#include "threepc/planes.h"
#include "threepc/rows.h"
#include "threepc/sample.h"

namespace privml::threepc {
namespace {

// `planes`: 8 entries, `stride` apart.
template <class W, class Field>
PRIVML_DEVICE void deal_part(const DealJob& job, Part part, W* planes, int stride) {
  const Field field(job.field.prime);
  const Bound below = bound_below(job.field.prime);
  const int rows = job.field.bits - 1;
  const Place place =
      place_of(job.count, packed_rows(rows, job.field.width), part.group, part.quad, kQuadsOf<W>);
  load_planes(job.r + part.group * kGroup + 4 * part.quad, place.valid, 1, planes, stride);
  RowWriter<W> out{job.out, place};
  u64 block = job.counter + part.group * group_blocks(rows) + part.quad;
  PRIVML_ROLLED for (int first = 0; first < rows; first += kBlockWords, block += kQuads) {
    W share[kBlockWords];
    uniform_rows(job.key, block, below, share);
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
      if (first + k < rows) {
        const W bit = plane_bit(planes, stride, rows - 1 - first - k);
        out.put(field.canonical(subtract(field, bit, share[k])), job.field.width);
      }
    }
  }
  out.finish();
}

// `scratch`: bits + 8 entries, `stride` apart. They hold secrets when it returns.
template <class W, class Field>
PRIVML_DEVICE void mask_part(const MaskJob& job, Part part, W* scratch, int stride) {
  const Field field(job.field.prime);
  const Bound below = bound_below(job.field.prime), factors = bound_below(job.field.prime - 1);
  const int rows = job.field.bits;
  const i64 element = part.group * kGroup + 4 * part.quad;
  const Place place =
      place_of(job.count, packed_rows(rows, job.field.width), part.group, part.quad, kQuadsOf<W>);
  const Place bytes = {element, 0, place.valid};
  W* planes = scratch + rows * stride;
  load_planes(job.m + element, place.valid, 0, planes, stride);

  const u32 public_one = job.party == 0 ? kLaneOne : 0;
  const u32 public_bits = job.party == 0 ? ~0u : 0;
  const W flip =
      plane_bit(planes, stride, rows - 1) ^ (load_row<W>(job.delta, bytes, 0) & kLaneOne);
  RowReader<W> dealt{job.dealt, place_of(job.count, packed_rows(rows - 1, job.field.width),
                                         part.group, part.quad, kQuadsOf<W>)};
  u64 deal_block = job.deal_counter + part.group * group_blocks(rows - 1) + part.quad;
  const i64 mask_blocks = group_blocks(rows);
  u64 mask_block = job.mask_counter + 2 * part.group * mask_blocks + part.quad;

  // One array of 16 numbers at a time, so that a CUDA thread needs few registers.
  W prefix = splat<W>(0);
  PRIVML_ROLLED for (int first = 0; first < rows; first += kBlockWords, mask_block += kQuads) {
    const int count = rows - first < kBlockWords ? rows - first : kBlockWords;
    W* at = scratch + first * stride;
    W numbers[kBlockWords] = {};
    if (job.party == 1 && first < rows - 1) {
      uniform_rows(job.deal_key, deal_block, below, numbers);
      deal_block += kQuads;
    }
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
      if (k < count) {
        W share = splat<W>(public_one);
        if (first + k < rows - 1) {
          share = job.party == 0 ? dealt.take(job.field.width) : numbers[k];
        }
        at[k * stride] = share;
      }
    }
    uniform_rows(job.mask_key, mask_block, factors, numbers);
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
      if (k < count) {
        const int bit = rows - 2 - first - k;  // -1: the pad
        const W m_bit = bit < 0 ? splat<W>(0) : plane_bit(planes, stride, bit);
        const W share = at[k * stride];
        const W different =
            select(spread(m_bit), share, field.add(splat<W>(public_one), field.negate(share)));
        W v = field.add(prefix, field.negate(different));
        v = field.add(v, W(((flip ^ m_bit) & public_bits) + public_one));
        at[k * stride] = field.multiply(v, W(numbers[k] + kLaneOne));
        prefix = field.add(prefix, different);
      }
    }
    uniform_rows(job.mask_key, mask_block + mask_blocks, below, numbers);
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
      if (k < count) {
        const W shift = job.party == 0 ? numbers[k] : field.negate(numbers[k]);
        at[k * stride] = field.canonical(field.add(at[k * stride], shift));
      }
    }
  }
  rotate_rows(scratch, stride, rows, load_row<W>(job.rotation, bytes, 0));
  RowWriter<W> out{job.out, place};
  for (int row = 0; row < rows; ++row) out.put(scratch[row * stride], job.field.width);
  out.finish();
}

template <class W, class Field>
PRIVML_DEVICE void open_part(const OpenJob& job, Part part) {
  const Field field(job.field.prime);
  const Place place = place_of(job.count, packed_rows(job.field.bits, job.field.width), part.group,
                               part.quad, kQuadsOf<W>);
  RowReader<W> first{job.first, place}, second{job.second, place};
  W all_nonzero = splat<W>(kLaneOne);
  for (int row = 0; row < job.field.bits; ++row) {
    all_nonzero &=
        nonzero(field, field.add(first.take(job.field.width), second.take(job.field.width)));
  }
  const Place bytes = {part.group * kGroup + 4 * part.quad, 0, place.valid};
  store_row(job.out, bytes, 0, W(all_nonzero ^ kLaneOne));
}

}  // namespace
}  // namespace privml::threepc
