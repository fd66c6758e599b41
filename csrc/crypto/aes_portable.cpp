// SPDX-License-Identifier: Apache-2.0
// Bitsliced AES-128 in constant time: bit r of plane 8 * i + b is bit b of byte i of block r, so
// 128 blocks take the same steps at once. The S-box inverts in a tower of quadratic extensions,
// GF(2) < GF(4) < GF(16) < GF(256) (Satoh et al., ASIACRYPT 2001; Canright, CHES 2005).
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/transpose.h"
#include "crypto/aes_kernels.h"

namespace privml::crypto::aes {
namespace {

// hi * t + lo over `Base`, where t^2 = t + c and scale() multiplies by c. At the bottom stand words
// of independent bits.
template <class Base>
struct Extension {
  Base hi, lo;
};
template <class Bits>
using Field4 = Extension<Bits>;
template <class Bits>
using Field16 = Extension<Field4<Bits>>;
template <class Bits>
using Field256 = Extension<Field16<Bits>>;

template <class Bits>
constexpr Bits add(Bits a, Bits b) {
  return a ^ b;
}
template <class Bits>
constexpr Bits multiply(Bits a, Bits b) {
  return a & b;
}
template <class Bits>
constexpr Bits square(Bits a) {
  return a;
}
template <class Bits>
constexpr Bits invert(Bits a) {
  return a;
}
template <class Bits>
constexpr Bits scale(Bits a) {
  return a;
}

template <class Base>
constexpr Extension<Base> add(Extension<Base> a, Extension<Base> b) {
  return {add(a.hi, b.hi), add(a.lo, b.lo)};
}

// By t in GF(4), and by t * c in GF(16): both make t^2 + t + c irreducible one level up.
template <class Bits>
constexpr Field4<Bits> scale(Field4<Bits> a) {
  return {add(a.hi, a.lo), a.hi};
}
template <class Bits>
constexpr Field16<Bits> scale(Field16<Bits> a) {
  return {scale(add(a.hi, a.lo)), scale(scale(a.hi))};
}

template <class Base>
constexpr Extension<Base> multiply(Extension<Base> a, Extension<Base> b) {
  const Base high = multiply(a.hi, b.hi), low = multiply(a.lo, b.lo);
  const Base all = multiply(add(a.hi, a.lo), add(b.hi, b.lo));
  return {add(all, low), add(low, scale(high))};
}
template <class Base>
constexpr Extension<Base> square(Extension<Base> a) {
  const Base high = square(a.hi);
  return {high, add(square(a.lo), scale(high))};
}
// The conjugate over the norm; zero for zero.
template <class Base>
constexpr Extension<Base> invert(Extension<Base> a) {
  const Base sum = add(a.hi, a.lo);
  const Base norm = add(multiply(a.lo, sum), scale(square(a.hi)));
  const Base inverse = invert(norm);
  return {multiply(a.hi, inverse), multiply(sum, inverse)};
}

template <class Bits>
constexpr Field256<Bits> field_from(const Bits* x) {
  return {{{x[7], x[6]}, {x[5], x[4]}}, {{x[3], x[2]}, {x[1], x[0]}}};
}
template <class Bits>
constexpr void store(const Field256<Bits>& a, Bits* x) {
  const Field16<Bits> halves[2] = {a.lo, a.hi};
  for (int i = 0; i < 2; ++i) {
    x[4 * i] = halves[i].lo.lo;
    x[4 * i + 1] = halves[i].lo.hi;
    x[4 * i + 2] = halves[i].hi.lo;
    x[4 * i + 3] = halves[i].hi.hi;
  }
}

// A linear map of bytes: bit j of row i says that input bit j enters output bit i.
using Matrix = std::array<u8, 8>;

template <Matrix matrix, int row, class Bits, std::size_t... column>
constexpr Bits row_sum(const Bits* x, std::index_sequence<column...>) {
  return ((matrix[row] >> column & 1 ? x[column] : Bits{}) ^ ...);
}
template <Matrix matrix, class Bits, std::size_t... row>
constexpr void apply_rows(const Bits* x, Bits* y, std::index_sequence<row...> all) {
  ((y[row] = row_sum<matrix, row>(x, all)), ...);
}
template <Matrix matrix, class Bits>
constexpr void apply(const Bits* x, Bits* y) {
  apply_rows<matrix>(x, y, std::make_index_sequence<8>{});
}

constexpr u8 tower_multiply(u8 a, u8 b) {
  u32 x[8], y[8], z[8];
  for (int i = 0; i < 8; ++i) {
    x[i] = a >> i & 1;
    y[i] = b >> i & 1;
  }
  store(multiply(field_from(x), field_from(y)), z);
  u8 product = 0;
  for (int i = 0; i < 8; ++i) product |= static_cast<u8>(z[i] << i);
  return product;
}

// From FIPS 197's field to the tower: x goes to a root of x^8 + x^4 + x^3 + x + 1.
constexpr Matrix to_tower() {
  for (int root = 2; root < 256; ++root) {
    u8 powers[9] = {1};
    for (int i = 1; i < 9; ++i) powers[i] = tower_multiply(powers[i - 1], static_cast<u8>(root));
    if ((powers[8] ^ powers[4] ^ powers[3] ^ powers[1] ^ 1) != 0) continue;
    Matrix matrix{};
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) matrix[i] |= static_cast<u8>((powers[j] >> i & 1) << j);
    return matrix;
  }
  return {};
}

constexpr u8 image(const Matrix& matrix, u8 x) {
  u8 y = 0;
  for (int i = 0; i < 8; ++i) {
    u8 row = matrix[i] & x;
    row ^= row >> 4;
    row ^= row >> 2;
    row ^= row >> 1;
    y |= static_cast<u8>((row & 1) << i);
  }
  return y;
}

// Back to FIPS 197's field and through the linear part of its affine map (section 5.1.1).
constexpr Matrix from_tower(const Matrix& forth) {
  Matrix matrix{};
  for (int j = 0; j < 8; ++j) {
    int x = 0;
    while (image(forth, static_cast<u8>(x)) != 1 << j) ++x;
    u8 y = 0;
    for (int turn : {0, 1, 2, 3, 4}) y ^= static_cast<u8>(x << turn | x >> (8 - turn));
    for (int i = 0; i < 8; ++i) matrix[i] |= static_cast<u8>((y >> i & 1) << j);
  }
  return matrix;
}

constexpr Matrix kToTower = to_tower();
constexpr Matrix kFromTower = from_tower(kToTower);
constexpr u8 kAffineConstant = 0x63;

template <class Bits>
inline void substitute(const Bits* x, Bits* y) {
  Bits inner[8];
  apply<kToTower>(x, inner);
  store(invert(field_from(inner)), inner);
  apply<kFromTower>(inner, y);
  for (int b = 0; b < 8; ++b)
    if (kAffineConstant >> b & 1) y[b] = ~y[b];
}

// The S-box on the four bytes of a word.
u32 substitute_word(u32 word) {
  u32 bits[8] = {}, out[8];
  for (int i = 0; i < 32; ++i) bits[i % 8] |= (word >> i & 1) << (i / 8);
  substitute(bits, out);
  u32 result = 0;
  for (int i = 0; i < 32; ++i) result |= (out[i % 8] >> (i / 8) & 1) << i;
  return result;
}

// 128 blocks side by side.
typedef u64 Plane __attribute__((vector_size(16)));
constexpr int kBatch = 128;

void add_round_key(const Block& key, Plane* state) {
  const u64 halves[2] = {key.lo, key.hi};
  for (int i = 0; i < kBatch; ++i) {
    const u64 bit = u64{0} - (halves[i / 64] >> (i % 64) & 1);
    state[i] ^= Plane{bit, bit};
  }
}

// SubBytes and ShiftRows: row r moves r columns to the left.
void substitute_and_shift(const Plane* in, Plane* out) {
  for (int i = 0; i < 16; ++i) substitute(in + 8 * ((i + 4 * (i % 4)) % 16), out + 8 * i);
}

void mix_columns(const Plane* in, Plane* out) {
  for (int i = 0; i < 16; ++i) {
    const Plane* bytes[4];
    for (int r = 0; r < 4; ++r) bytes[r] = in + 8 * (i / 4 * 4 + (i + r) % 4);
    const Plane top = bytes[0][7] ^ bytes[1][7];
    for (int b = 0; b < 8; ++b) {
      Plane mixed = bytes[1][b] ^ bytes[2][b] ^ bytes[3][b];
      if (b > 0) mixed ^= bytes[0][b - 1] ^ bytes[1][b - 1];
      if (0x1b >> b & 1) mixed ^= top;  // x^8 = x^4 + x^3 + x + 1
      out[8 * i + b] = mixed;
    }
  }
}

void transpose(const void* in, void* out) {
  transpose_128_rows(static_cast<const u64*>(in), 1, 1, static_cast<u64*>(out));
}

void encrypt_batch(const Block* keys, Block* blocks) {
  Plane state[kBatch], other[kBatch];
  transpose(blocks, state);
  add_round_key(keys[0], state);
  for (int round = 1; round < 10; ++round) {
    substitute_and_shift(state, other);
    mix_columns(other, state);
    add_round_key(keys[round], state);
  }
  substitute_and_shift(state, other);
  add_round_key(keys[10], other);
  transpose(other, blocks);
}

}  // namespace

void expand_key_portable(Block key, Block* keys) {
  u32 words[44];
  std::memcpy(words, &key, sizeof key);
  u32 constant = 1;
  for (int i = 4; i < 44; ++i) {
    u32 word = words[i - 1];
    if (i % 4 == 0) {
      word = substitute_word(word >> 8 | word << 24) ^ constant;
      constant = constant << 1 ^ (constant >> 7) * 0x11b;
    }
    words[i] = words[i - 4] ^ word;
  }
  std::memcpy(keys, words, sizeof words);
}

i64 encrypt_portable(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  for (i64 done = 0; done < count; done += kBatch) {
    const i64 n = std::min<i64>(kBatch, count - done);
    Block blocks[kBatch] = {};
    std::copy_n(in + done, n, blocks);
    encrypt_batch(keys, blocks);
    for (i64 i = 0; i < n; ++i) out[done + i] = feedforward ? blocks[i] ^ in[done + i] : blocks[i];
  }
  return count;
}

}  // namespace privml::crypto::aes
