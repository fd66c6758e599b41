// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/known_msb.h"

#include <vector>

#include "base/error.h"
#include "twopc/compare/wrap.h"
#include "twopc/lookup/two_way_transfer.h"
#include "twopc/session/chunk.h"
#include "twopc/session/flight.h"
#include "twopc/width/conversion.h"
#include "twopc/width/extension.h"

namespace privml::twopc {
namespace {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;

// Two correlations and a table of four words, or three correlations and one word.
bool by_table(double correlation_bits, int width) { return 3 * width < correlation_bits + 3; }

// w = (1 ^ msb)(m0 ^ m1) ^ m0 m1 as shares in Z_{2^width}: the sender's messages are indexed by the
// chooser's bits, share of msb + 2 * top bit.
void wrap_by_table(ot::Party& party, std::span<const u64> x, int bits, std::span<const u8> msb,
                   int width, std::span<u64> out) {
  const Halves part = halves(party.rank, std::ssize(x));
  const auto top = [&](i64 i) { return static_cast<u8>((x[i] >> (bits - 1)) & 1); };
  const std::span<u64> mask = out.subspan(part.send_begin, part.send_count);
  Words messages(4 * part.send_count);
  Bits choices(part.receive_count);
  party.prg.fill_ring(mask, width);
  for (i64 i = 0; i < part.send_count; ++i) {
    const u8 mine = top(part.send_begin + i), sign = msb[part.send_begin + i];
    for (u8 j = 0; j < 4; ++j) {
      const u8 other = j >> 1, is_zero = 1 ^ sign ^ (j & 1);
      messages[4 * i + j] = ((is_zero & (mine ^ other)) ^ (mine & other)) - mask[i];
    }
  }
  for (i64 i = 0; i < part.receive_count; ++i)
    choices[i] = msb[part.receive_begin + i] | top(part.receive_begin + i) << 1;
  two_way_transfer(party, messages, choices, 2, width,
                   out.subspan(part.receive_begin, part.receive_count));
}

}  // namespace

void wrap_shared_msb_to_ring(ot::Party& party, std::span<const u64> x, int bits,
                             std::span<const u8> msb, int width, std::span<u64> out) {
  if (by_table(party.correlation_bits, width))
    return wrap_by_table(party, x, bits, msb, width, out);
  Bits w(x.size());
  wrap_shared_msb(party, x, bits, msb, w);
  bits_to_ring(party, w, width, out);
}

void cost_wrap_shared_msb_to_ring(ot::CostMeter& meter, i64 n, int width) {
  if (by_table(meter.correlation_bits, width))
    return cost_two_way_transfer(meter, {first_half(n), n - first_half(n)}, 2, width);
  cost_wrap_shared_msb(meter, n);
  cost_bits_to_ring(meter, n, width);
}

namespace {

// A signed x is taken as x + 2^(bits-1), whose most significant bit is the complement.
struct Unsigned {
  Words x;
  Bits msb;
  u64 added;
};

Unsigned as_unsigned(const ot::Party& party, std::span<const u64> x, int bits,
                     std::span<const u8> msb, bool is_signed) {
  const bool offset = is_signed && party.rank == 0;
  Unsigned number{
      {x.begin(), x.end()}, {msb.begin(), msb.end()}, offset ? u64{1} << (bits - 1) : 0};
  for (u64& word : number.x) word = (word + number.added) & low_mask(bits);
  for (u8& bit : number.msb) bit = (bit ^ (offset ? 1 : 0)) & 1;
  return number;
}

void extend_chunk(ot::Party& party, std::span<const u64> x, int from, std::span<const u8> msb,
                  bool is_signed, int to, std::span<u64> out) {
  const Unsigned number = as_unsigned(party, x, from, msb, is_signed);
  Words w(x.size());
  wrap_shared_msb_to_ring(party, number.x, from, number.msb, to - from, w);
  for (size_t i = 0; i < x.size(); ++i)
    out[i] = (number.x[i] - (w[i] << from) - number.added) & low_mask(to);
}

void check(std::span<const u64> x, size_t msb, std::span<u64> out) {
  expect(x.size() == out.size() && x.size() == msb, "known msb: lengths differ");
}

// x with its public most significant bit made 0, and what undoes that.
Words nonnegative(const ot::Party& party, std::span<const u64> x, int bits, u8 msb,
                  bool is_signed) {
  Words out(x.begin(), x.end());
  if (msb == 0) return out;
  for (u64& word : out) {
    if (is_signed) word = u64{0} - word;
    if (party.rank == 0) word -= is_signed ? 1 : u64{1} << (bits - 1);
  }
  return out;
}

void undo(const ot::Party& party, u8 msb, bool is_signed, u64 taken, int width,
          std::span<u64> out) {
  if (msb == 0) return;
  for (u64& word : out) {
    if (is_signed) word = u64{0} - word;
    if (party.rank == 0) word += is_signed ? ~u64{0} : taken;
    word &= low_mask(width);
  }
}

}  // namespace

void extend_shared_msb(ot::Party& party, std::span<const u64> x, int from, std::span<const u8> msb,
                       bool is_signed, int to, std::span<u64> out) {
  check(x, msb.size(), out);
  expect(from >= 1 && from <= to && to <= 64,
         "extension: widths must satisfy 1 <= from <= to <= 64");
  if (from == to) {
    for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] & low_mask(to);
    return;
  }
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_wrap_shared_msb_to_ring(meter, n, to - from); },
      [&](i64 begin, i64 n) {
        extend_chunk(party, x.subspan(begin, n), from, msb.subspan(begin, n), is_signed, to,
                     out.subspan(begin, n));
      });
}

void cost_extend_shared_msb(ot::CostMeter& meter, i64 n, int from, int to) {
  if (from == to) return;
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) {
    cost_wrap_shared_msb_to_ring(m, count, to - from);
  });
}

void extend_known_msb(ot::Party& party, std::span<const u64> x, int from, u8 msb, bool is_signed,
                      int to, std::span<u64> out) {
  expect(msb <= 1, "extend_known_msb: msb must be 0 or 1");
  expect(from >= 1 && from <= 64, "extend_known_msb: from must lie in 1..64");
  extend_nonnegative(party, nonnegative(party, x, from, msb, is_signed), from, to, out);
  undo(party, msb, is_signed, u64{1} << (from - 1), to, out);
}

void cost_extend_known_msb(ot::CostMeter& meter, i64 n, int from, int to) {
  cost_extend_nonnegative(meter, n, from, to);
}

}  // namespace privml::twopc
