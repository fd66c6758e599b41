// SPDX-License-Identifier: Apache-2.0
#include "crypto/aes.h"

#if defined(__x86_64__)
#include <immintrin.h>
// g++ 12 reports its own AVX-512 headers here.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <cstring>

namespace privml {
namespace {

// ---- portable, constant time: the S-box by inversion in GF(2^8) with an addition chain on bytes.
constexpr u8 xtime(u8 x) { return static_cast<u8>((x << 1) ^ (0x1b & -(x >> 7))); }

u8 gf_multiply(u8 a, u8 b) {
  u8 r = 0;
  for (int i = 0; i < 8; ++i) {
    r ^= static_cast<u8>(a & -(b & 1));
    a = xtime(a);
    b >>= 1;
  }
  return r;
}

u8 sub_byte(u8 x) {
  const u8 x2 = gf_multiply(x, x), x3 = gf_multiply(x2, x), x6 = gf_multiply(x3, x3);
  const u8 x12 = gf_multiply(x6, x6), x15 = gf_multiply(x12, x3);
  u8 y = x15;
  for (int i = 0; i < 4; ++i) y = gf_multiply(y, y);  // x^240
  y = gf_multiply(gf_multiply(y, x12), x2);           // x^254
  const auto rotl = [](u8 v, int n) { return static_cast<u8>((v << n) | (v >> (8 - n))); };
  return y ^ rotl(y, 1) ^ rotl(y, 2) ^ rotl(y, 3) ^ rotl(y, 4) ^ 0x63;
}

void expand_key_portable(Block key, std::array<Block, 11>& round_keys) {
  u8 w[176];
  std::memcpy(w, &key, 16);
  u8 rcon = 1;
  for (int i = 16; i < 176; i += 4) {
    u8 t[4];
    std::memcpy(t, w + i - 4, 4);
    if (i % 16 == 0) {
      const u8 first = t[0];
      t[0] = sub_byte(t[1]) ^ rcon;
      t[1] = sub_byte(t[2]);
      t[2] = sub_byte(t[3]);
      t[3] = sub_byte(first);
      rcon = xtime(rcon);
    }
    for (int j = 0; j < 4; ++j) w[i + j] = w[i + j - 16] ^ t[j];
  }
  std::memcpy(round_keys.data(), w, 176);
}

Block encrypt_portable(Block in, const std::array<Block, 11>& keys) {
  u8 s[16], t[16];
  in ^= keys[0];
  std::memcpy(s, &in, 16);
  for (int round = 1; round <= 10; ++round) {
    for (int c = 0; c < 4; ++c)
      for (int r = 0; r < 4; ++r) t[4 * c + r] = sub_byte(s[4 * ((c + r) % 4) + r]);
    if (round < 10) {
      for (int c = 0; c < 4; ++c) {
        const u8* a = t + 4 * c;
        const u8 all = a[0] ^ a[1] ^ a[2] ^ a[3];
        for (int r = 0; r < 4; ++r)
          s[4 * c + r] = static_cast<u8>(a[r] ^ all ^ xtime(a[r] ^ a[(r + 1) % 4]));
      }
    } else {
      std::memcpy(s, t, 16);
    }
    u8 k[16];
    std::memcpy(k, &keys[round], 16);
    for (int i = 0; i < 16; ++i) s[i] ^= k[i];
  }
  Block out;
  std::memcpy(&out, s, 16);
  return out;
}

void run_portable(const std::array<Block, 11>& keys, const Block* in, Block* out, i64 count,
                  bool feedforward) {
  for (i64 i = 0; i < count; ++i) {
    const Block x = in[i];
    out[i] = encrypt_portable(x, keys);
    if (feedforward) out[i] ^= x;
  }
}

#if defined(__x86_64__)
// ---- AES-NI: the next round key from the last one (FIPS 197, section 5.2).
template <int RoundConstant>
[[gnu::always_inline, gnu::target("aes,sse4.1")]] inline __m128i next_round_key(__m128i key) {
  const __m128i word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, RoundConstant), 0xff);
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, word);
}

__attribute__((target("aes,sse4.1"))) void expand_key_aesni(Block key,
                                                            std::array<Block, 11>& round_keys) {
  __m128i k[11];
  k[0] = _mm_load_si128(reinterpret_cast<const __m128i*>(&key));
  k[1] = next_round_key<0x01>(k[0]);
  k[2] = next_round_key<0x02>(k[1]);
  k[3] = next_round_key<0x04>(k[2]);
  k[4] = next_round_key<0x08>(k[3]);
  k[5] = next_round_key<0x10>(k[4]);
  k[6] = next_round_key<0x20>(k[5]);
  k[7] = next_round_key<0x40>(k[6]);
  k[8] = next_round_key<0x80>(k[7]);
  k[9] = next_round_key<0x1b>(k[8]);
  k[10] = next_round_key<0x36>(k[9]);
  for (int r = 0; r < 11; ++r) _mm_store_si128(reinterpret_cast<__m128i*>(&round_keys[r]), k[r]);
}

constexpr int kLanes = 8;

__attribute__((target("aes,sse4.1"))) void run_aesni(const std::array<Block, 11>& keys,
                                                     const Block* in, Block* out, i64 count,
                                                     bool feedforward) {
  __m128i k[11];
  for (int r = 0; r < 11; ++r) k[r] = _mm_load_si128(reinterpret_cast<const __m128i*>(&keys[r]));
  for (i64 i = 0; i < count; i += kLanes) {
    const int n = static_cast<int>(count - i < kLanes ? count - i : kLanes);
    __m128i x[kLanes], s[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      x[j] = _mm_load_si128(reinterpret_cast<const __m128i*>(in + i + (j < n ? j : 0)));
      s[j] = _mm_xor_si128(x[j], k[0]);
    }
    for (int r = 1; r < 10; ++r)
      for (int j = 0; j < kLanes; ++j) s[j] = _mm_aesenc_si128(s[j], k[r]);
    for (int j = 0; j < kLanes; ++j) {
      s[j] = _mm_aesenclast_si128(s[j], k[10]);
      if (feedforward) s[j] = _mm_xor_si128(s[j], x[j]);
    }
    for (int j = 0; j < n; ++j) _mm_store_si128(reinterpret_cast<__m128i*>(out + i + j), s[j]);
  }
}

// Whole groups of 16 blocks; the caller handles the rest.
__attribute__((target("vaes,avx2"))) i64 run_vaes256(const std::array<Block, 11>& keys,
                                                     const Block* in, Block* out, i64 count,
                                                     bool feedforward) {
  __m256i k[11];
  for (int r = 0; r < 11; ++r)
    k[r] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(&keys[r])));
  i64 i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    __m256i s[kLanes];
    for (int j = 0; j < kLanes; ++j)
      s[j] = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i + 2 * j)),
                              k[0]);
    for (int r = 1; r < 10; ++r)
      for (int j = 0; j < kLanes; ++j) s[j] = _mm256_aesenc_epi128(s[j], k[r]);
    for (int j = 0; j < kLanes; ++j) {
      s[j] = _mm256_aesenclast_epi128(s[j], k[10]);
      if (feedforward)
        s[j] = _mm256_xor_si256(
            s[j], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i + 2 * j)));
    }
    for (int j = 0; j < kLanes; ++j)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 2 * j), s[j]);
  }
  return i;
}

__attribute__((target("vaes,avx512f"))) i64 run_vaes512(const std::array<Block, 11>& keys,
                                                        const Block* in, Block* out, i64 count,
                                                        bool feedforward) {
  __m512i k[11];
  for (int r = 0; r < 11; ++r)
    k[r] = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(&keys[r])));
  i64 i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    __m512i s[kLanes];
    for (int j = 0; j < kLanes; ++j)
      s[j] = _mm512_xor_si512(_mm512_loadu_si512(in + i + 4 * j), k[0]);
    for (int r = 1; r < 10; ++r)
      for (int j = 0; j < kLanes; ++j) s[j] = _mm512_aesenc_epi128(s[j], k[r]);
    for (int j = 0; j < kLanes; ++j) {
      s[j] = _mm512_aesenclast_epi128(s[j], k[10]);
      if (feedforward) s[j] = _mm512_xor_si512(s[j], _mm512_loadu_si512(in + i + 4 * j));
    }
    for (int j = 0; j < kLanes; ++j) _mm512_storeu_si512(out + i + 4 * j, s[j]);
  }
  return i;
}

void run(AesBackend backend, const std::array<Block, 11>& keys, const Block* in, Block* out,
         i64 count, bool feedforward) {
  if (backend == AesBackend::portable) return run_portable(keys, in, out, count, feedforward);
  i64 done = 0;
  if (backend == AesBackend::vaes512) done = run_vaes512(keys, in, out, count, feedforward);
  if (backend == AesBackend::vaes256) done = run_vaes256(keys, in, out, count, feedforward);
  run_aesni(keys, in + done, out + done, count - done, feedforward);
}
#else
void run(AesBackend, const std::array<Block, 11>& keys, const Block* in, Block* out, i64 count,
         bool feedforward) {
  run_portable(keys, in, out, count, feedforward);
}
#endif

// Whole groups of 16 counters, made in registers; the low word must not overflow.
__attribute__((target("vaes,avx2"))) i64 count_vaes256(const std::array<Block, 11>& keys,
                                                       Block first, Block* out, i64 count) {
  __m256i k[11];
  for (int r = 0; r < 11; ++r)
    k[r] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(&keys[r])));
  const long long lo = static_cast<long long>(first.lo), hi = static_cast<long long>(first.hi);
  __m256i counter = _mm256_set_epi64x(hi, lo + 1, hi, lo);
  const __m256i two = _mm256_set_epi64x(0, 2, 0, 2);
  i64 i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    __m256i s[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      s[j] = _mm256_xor_si256(counter, k[0]);
      counter = _mm256_add_epi64(counter, two);
    }
    for (int r = 1; r < 10; ++r)
      for (int j = 0; j < kLanes; ++j) s[j] = _mm256_aesenc_epi128(s[j], k[r]);
    for (int j = 0; j < kLanes; ++j)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 2 * j),
                          _mm256_aesenclast_epi128(s[j], k[10]));
  }
  return i;
}
}  // namespace

bool aes_backend_supported(AesBackend backend) {
#if defined(__x86_64__)
  switch (backend) {
    case AesBackend::portable:
      return true;
    case AesBackend::aesni:
      return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
    case AesBackend::vaes256:
      return aes_backend_supported(AesBackend::aesni) && __builtin_cpu_supports("vaes") &&
             __builtin_cpu_supports("avx2");
    case AesBackend::vaes512:
      return aes_backend_supported(AesBackend::vaes256) && __builtin_cpu_supports("avx512f");
  }
  return false;
#else
  return backend == AesBackend::portable;
#endif
}

AesBackend best_aes_backend() {
  static const AesBackend best = [] {
    for (AesBackend b : {AesBackend::vaes512, AesBackend::vaes256, AesBackend::aesni})
      if (aes_backend_supported(b)) return b;
    return AesBackend::portable;
  }();
  return best;
}

Aes128::Aes128(Block key, AesBackend backend) : backend_(backend) {
  if (backend == AesBackend::portable) {
    expand_key_portable(key, round_keys_);
  } else {
    expand_key_aesni(key, round_keys_);
  }
}

void Aes128::encrypt(const Block* in, Block* out, i64 count) const {
  run(backend_, round_keys_, in, out, count, false);
}

void Aes128::encrypt_feedforward(const Block* in, Block* out, i64 count) const {
  run(backend_, round_keys_, in, out, count, true);
}

void Aes128::encrypt_counter(Block first, Block* out, i64 count) const {
  constexpr i64 kTile = 256;
  const bool in_registers =
      backend_ == AesBackend::vaes256 && first.lo <= ~u64{0} - static_cast<u64>(count);
  const i64 start = in_registers ? count_vaes256(round_keys_, first, out, count) : 0;
  for (i64 done = start; done < count; done += kTile) {
    const i64 n = count - done < kTile ? count - done : kTile;
    for (i64 i = 0; i < n; ++i) {
      const u64 lo = first.lo + static_cast<u64>(done + i);
      out[done + i] = {lo, first.hi + (lo < first.lo)};
    }
    run(backend_, round_keys_, out + done, out + done, n, false);
  }
}

}  // namespace privml
