// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/word_product.h"

#include <algorithm>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "ot/derive.h"
#include "twopc/session/chunk.h"
#include "twopc/session/flight.h"

namespace privml::twopc {
namespace {

constexpr i64 kCotsAtOnce = i64{1} << 18;  // 4 MB per direction

// A constant's bit i is worth 2^(constant_shift + i); its product of bits counts twice.
int constant_width(const LinearShape& shape, int bit) {
  return shape.ell - shape.constant_shift - bit - 1;
}

// Bits of the constant whose transfer is not local.
int constant_planes(const LinearShape& shape) {
  return std::clamp(shape.ell - shape.constant_shift - 1, 0, shape.constant.bits);
}

void check(const LinearShape& shape) {
  const auto fits = [](WordFormat word) { return word.bits >= 0 && word.bits <= 64; };
  expect(shape.ell >= 1 && shape.ell <= 64 && fits(shape.constant) && fits(shape.factor),
         "linear_words: widths must lie in 0..64, ell in 1..64");
  expect(shape.constant_shift >= 0 && shape.constant_shift < 64,
         "linear_words: constant_shift must lie in 0..63");
}

i64 chunk_limit(const LinearShape& shape) {
  const i64 planes = constant_planes(shape) / 2 + shape.factor.bits + 1;
  return std::clamp<i64>(kCotsAtOnce / planes, 1 << 12, kChunk);
}

u64 word_value(u64 word, WordFormat format) {
  if (format.bits == 0) return 0;
  return format.is_signed ? static_cast<u64>(to_signed(word, format.bits))
                          : word & low_mask(format.bits);
}

bool is_negative(WordFormat format, int bit) { return format.is_signed && bit == format.bits - 1; }

// out += (negative ? -1 : 1) * share * 2^shift.
void accumulate(std::span<u64> out, std::span<const u64> share, bool negative, int shift) {
  if (negative) {
    for (size_t k = 0; k < out.size(); ++k) out[k] -= share[k] << shift;
  } else {
    for (size_t k = 0; k < out.size(); ++k) out[k] += share[k] << shift;
  }
}

void bit_plane(std::span<const u64> words, int bit, u8* out) {
  for (size_t k = 0; k < words.size(); ++k) out[k] = static_cast<u8>((words[k] >> bit) & 1);
}

struct Chunk {
  const LinearShape& shape;
  std::span<const u64> constant, factor, u;
  std::span<u64> out;
};

// Planes of the constant for one half of the batch, then planes of the factor for all of it.
struct Planes {
  i64 begin, count;  // the half
  AlignedVector<u8> choices;
  WipedVector<crypto::Block> cots;
};

Planes planes_of(const Chunk& chunk, i64 begin, i64 count) {
  const i64 n = std::ssize(chunk.out);
  Planes planes{begin, count, {}, {}};
  planes.cots.resize(count * constant_planes(chunk.shape) + n * chunk.shape.factor.bits);
  return planes;
}

void choose(ot::Party& party, const Chunk& chunk, Planes& planes) {
  const i64 n = std::ssize(chunk.out);
  planes.choices.resize(planes.cots.size());
  u8* plane = planes.choices.data();
  for (int i = 0; i < constant_planes(chunk.shape); ++i, plane += planes.count)
    bit_plane(chunk.constant.subspan(planes.begin, planes.count), i, plane);
  for (int i = 0; i < chunk.shape.factor.bits; ++i, plane += n) bit_plane(chunk.factor, i, plane);
  ot::choose_receive(party, planes.choices, planes.cots.data());
}

void send(ot::Party& party, const Chunk& chunk, Planes& planes) {
  const i64 n = std::ssize(chunk.out);
  const LinearShape& shape = chunk.shape;
  AlignedVector<u64> x(n), share(n);
  const crypto::Block* q = planes.cots.data();
  const auto transfer = [&](i64 count, int width) {
    ot::additive_send(party, q, std::span(x).first(count), 1, width, std::span(share).first(count));
    q += count;
    return std::span<const u64>(share).first(count);
  };
  for (int i = 0; i < constant_planes(shape); ++i) {
    for (i64 k = 0; k < planes.count; ++k) x[k] = (chunk.constant[planes.begin + k] >> i) & 1;
    accumulate(chunk.out.subspan(planes.begin, planes.count),
               transfer(planes.count, constant_width(shape, i)), !is_negative(shape.constant, i),
               shape.constant_shift + i + 1);
  }
  for (int i = 0; i < shape.factor.bits; ++i) {
    for (i64 k = 0; k < n; ++k) {
      const u64 minus = u64{0} - ((chunk.factor[k] >> i) & 1);
      x[k] = (chunk.u[k] ^ minus) - minus;
    }
    accumulate(chunk.out, transfer(n, shape.ell - i), is_negative(shape.factor, i), i);
  }
}

void receive(ot::Party& party, const Chunk& chunk, const Planes& planes) {
  const i64 n = std::ssize(chunk.out);
  const LinearShape& shape = chunk.shape;
  AlignedVector<u64> share(n);
  const crypto::Block* t = planes.cots.data();
  const u8* plane = planes.choices.data();
  const auto transfer = [&](i64 count, int width) {
    ot::additive_receive(party, t, {plane, static_cast<size_t>(count)}, 1, width,
                         std::span(share).first(count));
    t += count;
    plane += count;
    return std::span<const u64>(share).first(count);
  };
  for (int i = 0; i < constant_planes(shape); ++i) {
    accumulate(chunk.out.subspan(planes.begin, planes.count),
               transfer(planes.count, constant_width(shape, i)), !is_negative(shape.constant, i),
               shape.constant_shift + i + 1);
  }
  for (int i = 0; i < shape.factor.bits; ++i)
    accumulate(chunk.out, transfer(n, shape.ell - i), is_negative(shape.factor, i), i);
}

void run_chunk(ot::Party& party, const Chunk& chunk) {
  const i64 n = std::ssize(chunk.out);
  const LinearShape& shape = chunk.shape;
  const Halves part = halves(party.rank, n);
  Planes sent = planes_of(chunk, part.send_begin, part.send_count),
         chosen = planes_of(chunk, part.receive_begin, part.receive_count);
  for (i64 k = 0; k < n; ++k) {
    const u64 constant = shape.constant.bits ? word_value(chunk.constant[k], shape.constant) : 0;
    const u64 factor =
        shape.factor.bits ? word_value(chunk.factor[k], shape.factor) * chunk.u[k] : 0;
    chunk.out[k] = (constant << shape.constant_shift) + factor;
  }
  choose(party, chunk, chosen);
  ot::choose_send(party, sent.cots.data(), std::ssize(sent.cots));
  send(party, chunk, sent);
  receive(party, chunk, chosen);
  for (u64& value : chunk.out) value &= low_mask(shape.ell);
}

i64 stream_bytes(i64 n, i64 half, const LinearShape& shape) {
  i64 bytes = 0;
  for (int i = 0; i < constant_planes(shape); ++i)
    bytes += packed_bytes(half, constant_width(shape, i));
  for (int i = 0; i < shape.factor.bits; ++i) bytes += packed_bytes(n, shape.ell - i);
  return bytes;
}

void cost_chunk(ot::CostMeter& meter, i64 n, const LinearShape& shape) {
  const i64 half[2] = {first_half(n), n - first_half(n)};
  i64 cots[2];
  for (int r : {0, 1}) {
    cots[r] = half[r] * constant_planes(shape) + n * shape.factor.bits;
    meter.draw(r, cots[r]);
  }
  meter.exchange(packed_bytes(cots[1], 1), packed_bytes(cots[0], 1));
  meter.exchange(stream_bytes(n, half[0], shape), stream_bytes(n, half[1], shape));
}

std::span<const u64> part(std::span<const u64> words, i64 begin, i64 n) {
  return words.empty() ? words : words.subspan(begin, n);
}

}  // namespace

void linear_words(ot::Party& party, const LinearShape& shape, std::span<const u64> constant,
                  std::span<const u64> factor, std::span<const u64> u, std::span<u64> out) {
  check(shape);
  const size_t n = out.size();
  expect(constant.size() == (shape.constant.bits ? n : 0) &&
             factor.size() == (shape.factor.bits ? n : 0) && u.size() == factor.size(),
         "linear_words: lengths differ, or a word of no bits has values");
  expect(shape.factor.bits <= shape.ell, "linear_words: the factor has more bits than the ring");
  in_chunks(
      party, std::ssize(out), [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, shape); },
      [&](i64 begin, i64 count) {
        run_chunk(party, {shape, part(constant, begin, count), part(factor, begin, count),
                          part(u, begin, count), out.subspan(begin, count)});
      },
      chunk_limit(shape));
}

void cost_linear_words(ot::CostMeter& meter, i64 count, const LinearShape& shape) {
  cost_in_chunks(
      meter, count, [&](ot::CostMeter& m, i64 n) { cost_chunk(m, n, shape); }, chunk_limit(shape));
}

void multiply_word(ot::Party& party, std::span<const u64> factor, WordFormat format,
                   std::span<const u64> u, int ell, std::span<u64> out) {
  linear_words(party, {{}, 0, format, ell}, {}, factor, u, out);
}

void cost_multiply_word(ot::CostMeter& meter, i64 count, WordFormat format, int ell) {
  cost_linear_words(meter, count, {{}, 0, format, ell});
}

void word_to_ring(ot::Party& party, std::span<const u64> word, WordFormat format, int ell,
                  std::span<u64> out) {
  linear_words(party, {format, 0, {}, ell}, word, {}, {}, out);
}

void cost_word_to_ring(ot::CostMeter& meter, i64 count, WordFormat format, int ell) {
  cost_linear_words(meter, count, {format, 0, {}, ell});
}

}  // namespace privml::twopc
