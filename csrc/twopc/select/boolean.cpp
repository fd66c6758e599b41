// SPDX-License-Identifier: Apache-2.0
#include "twopc/select/boolean.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "twopc/select/bit_products.h"
#include "twopc/session/chunk.h"
#include "twopc/session/flight.h"

namespace privml::twopc {
namespace {

constexpr std::array kSingle{1};

void cost_and_private_chunk(ot::CostMeter& meter, i64 n) {
  const i64 half = first_half(n);
  meter.draw(0, half);
  meter.draw(1, n - half);
  meter.exchange(packed_bytes(n, 1), packed_bytes(n, 1));
}

// Own share or, at party 0, its complement: the shared bit or its negation.
std::vector<u8> negate(const ot::Party& party, std::span<const u8> bits) {
  std::vector<u8> negated(bits.begin(), bits.end());
  if (party.rank == 0) {
    for (u8& bit : negated) bit ^= 1;
  }
  return negated;
}

}  // namespace

void and_bits(ot::Party& party, std::span<const u8> a, std::span<const u8> b, std::span<u8> out) {
  expect(a.size() == b.size() && a.size() == out.size(), "and_bits: sizes must agree");
  in_chunks(
      party, std::ssize(a),
      [](ot::CostMeter& meter, i64 n) { cost_multiply_planes(meter, kSingle, n); },
      [&](i64 begin, i64 n) {
        const Factor factor{b.data() + begin, out.data() + begin, false};
        multiply_planes(party, {{a.data() + begin, {factor}}}, n);
      });
}

void or_bits(ot::Party& party, std::span<const u8> a, std::span<const u8> b, std::span<u8> out) {
  and_bits(party, negate(party, a), negate(party, b), out);
  if (party.rank == 0) {
    for (u8& bit : out) bit ^= 1;
  }
}

void cost_and_bits(ot::CostMeter& meter, i64 n) { cost_and_strings(meter, n, 1); }

void and_strings(ot::Party& party, std::span<const u8> a, std::span<const u8> b, int width,
                 std::span<u8> out) {
  expect(width >= 1 && width <= 8, "and_strings: width must be in 1..8");
  expect(a.size() == b.size() && a.size() == out.size(), "and_strings: sizes must agree");
  const std::array widths{width};
  in_chunks(
      party, std::ssize(a),
      [&](ot::CostMeter& meter, i64 n) { cost_multiply_planes(meter, widths, n); },
      [&](i64 begin, i64 n) {
        AlignedVector<u8> planes(width * n);
        PlaneProduct product{a.data() + begin, {}};
        for (int j = 0; j < width; ++j) {
          u8* const plane = planes.data() + j * n;
          for (i64 i = 0; i < n; ++i) plane[i] = b[begin + i] >> j & 1;
          product.factors.push_back({plane, plane, false});
        }
        multiply_planes(party, {product}, n);
        for (i64 i = 0; i < n; ++i) {
          u8 string = 0;
          for (int j = 0; j < width; ++j) string |= static_cast<u8>(planes[j * n + i] << j);
          out[begin + i] = string;
        }
      });
}

void cost_and_strings(ot::CostMeter& meter, i64 n, int width) {
  const std::array widths{width};
  cost_in_chunks(meter, n,
                 [&](ot::CostMeter& m, i64 count) { cost_multiply_planes(m, widths, count); });
}

// A random product without communication: the sender's factor is the difference of its two pads,
// the chooser's the choice of the correlation; then both factors are corrected in the open.
void and_private(ot::Party& party, std::span<const u8> x, std::span<u8> out) {
  expect(x.size() == out.size(), "and_private: sizes must agree");
  in_chunks(party, std::ssize(x), cost_and_private_chunk, [&](i64 begin, i64 n) {
    const Halves part = halves(party.rank, n);
    WipedVector<crypto::Block> pads(2 * part.send_count + part.receive_count);
    crypto::Block* const zero = pads.data();
    crypto::Block* const one = zero + part.send_count;
    crypto::Block* const chosen = one + part.send_count;
    ot::draw_as_sender(party, zero, part.send_count);
    ot::draw_as_receiver(party, chosen, part.receive_count);
    const crypto::Block delta = party.sender.delta();
    std::vector<u8> factor(n), share(n), corrected(n);
    for (i64 i = 0; i < part.send_count; ++i) one[i] = zero[i] ^ delta;
    for (i64 i = 0; i < part.receive_count; ++i)
      factor[part.receive_begin + i] = crypto::low_bit(chosen[i]);
    party.hash.hash(pads.data(), pads.data(), std::ssize(pads));
    for (i64 i = 0; i < part.send_count; ++i) {
      share[part.send_begin + i] = crypto::low_bit(zero[i]);
      factor[part.send_begin + i] = crypto::low_bit(zero[i] ^ one[i]);
    }
    for (i64 i = 0; i < part.receive_count; ++i)
      share[part.receive_begin + i] = crypto::low_bit(chosen[i]);
    for (i64 i = 0; i < n; ++i) corrected[i] = x[begin + i] ^ factor[i];
    write_bits(party, corrected);
    std::vector<u8> difference(n, 0);
    read_bits_xor(party, difference);
    // xy = (f ^ d)(g ^ e) = fg ^ f e ^ d (g ^ e): the sender has f e ^ d e, the chooser d g.
    for (i64 i = 0; i < n; ++i) out[begin + i] = share[i] ^ (factor[i] & difference[i]);
    for (i64 i = part.send_begin; i < part.send_begin + part.send_count; ++i) {
      out[begin + i] ^= corrected[i] & difference[i];
    }
  });
}

void cost_and_private(ot::CostMeter& meter, i64 n) {
  cost_in_chunks(meter, n, cost_and_private_chunk);
}

}  // namespace privml::twopc
