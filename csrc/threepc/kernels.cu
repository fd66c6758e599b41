// SPDX-License-Identifier: Apache-2.0
// The kernels of the three-party engine on a CUDA device: the device headers, one thread per quad
// of four elements (fills, lists), element or byte (the rest). Threads share nothing, so no kernel
// synchronizes; mask and deal want bits + 8 and 8 words of dynamic shared memory per thread.
// A key is four 64-bit words, passed by value. Pointers are aligned as their types, lists and byte
// arrays to 4 bytes. privml/engines/threepc/kernels_cuda.py launches them.
#include "threepc/fill.h"
#include "threepc/ring.h"
#include "threepc/sign.h"
#include "threepc/wire.h"

namespace privml::threepc {
namespace {

struct Key {
  u32 words[8];
  __device__ Key(u64 a, u64 b, u64 c, u64 d) {
    const u64 all[4] = {a, b, c, d};
    PRIVML_UNROLL for (int k = 0; k < 8; ++k) {
      words[k] = static_cast<u32>(all[k / 2] >> (32 * (k % 2)));
    }
  }
};

PRIVML_DEVICE i64 thread_index() { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }

PRIVML_DEVICE Part part_of(i64 thread) {
  return {thread / kQuads, static_cast<int>(thread % kQuads)};
}

template <class Field>
PRIVML_DEVICE void deal_thread(const DealJob& job, u32* shared) {
  const Part part = part_of(thread_index());
  if (part.group * kGroup >= job.count) return;
  deal_part<u32, Field>(job, part, shared + threadIdx.x, static_cast<int>(blockDim.x));
}

template <class Field>
PRIVML_DEVICE void mask_thread(const MaskJob& job, u32* shared) {
  const Part part = part_of(thread_index());
  if (part.group * kGroup >= job.count) return;
  mask_part<u32, Field>(job, part, shared + threadIdx.x, static_cast<int>(blockDim.x));
}

template <class Field>
PRIVML_DEVICE void open_thread(const OpenJob& job) {
  const Part part = part_of(thread_index());
  if (part.group * kGroup >= job.count) return;
  open_part<u32, Field>(job, part);
}

}  // namespace
}  // namespace privml::threepc

using namespace privml;
using namespace privml::threepc;

#define PRIVML_KEY(name) u64 name##_0, u64 name##_1, u64 name##_2, u64 name##_3
#define PRIVML_KEY_OF(name) \
  Key { name##_0, name##_1, name##_2, name##_3 }

extern "C" {

// minuend may be null
__global__ void fill_words(PRIVML_KEY(key), u64 counter, i64 count, int bits, const i64* minuend,
                           i64* out) {
  const Key k = PRIVML_KEY_OF(key);
  const FillJob job = {k.words, counter, count, bits, 0, minuend, out, nullptr};
  const i64 super = thread_index() / kQuads;
  if (super * fill_words_per(bits) >= count) return;
  fill_words_part<u32>(job, super, static_cast<int>(thread_index() % kQuads));
}

__global__ void fill_bits(PRIVML_KEY(key), u64 counter, i64 count, u8* out) {
  const Key k = PRIVML_KEY_OF(key);
  const FillJob job = {k.words, counter, count, 1, 0, nullptr, nullptr, out};
  const i64 super = thread_index() / kQuads;
  if (super * kFillBits >= count) return;
  fill_bits_part<u32>(job, super, static_cast<int>(thread_index() % kQuads));
}

__global__ void fill_field(PRIVML_KEY(key), u64 counter, i64 count, u32 modulus, u8* out) {
  const Key k = PRIVML_KEY_OF(key);
  const FillJob job = {k.words, counter, count, 8, modulus, nullptr, nullptr, out};
  const i64 super = thread_index() / kQuads;
  if (super * kFillNumbers >= count) return;
  fill_field_part<u32>(job, super, static_cast<int>(thread_index() % kQuads));
}

// The reduction is the Mersenne fold for p = 127 and Barrett's for other primes.
__global__ void deal_sign(int bits, u32 prime, int width, const i64* r, i64 count, PRIVML_KEY(key),
                          u64 counter, u8* out) {
  extern __shared__ u32 shared[];
  const Key k = PRIVML_KEY_OF(key);
  const DealJob job = {{bits, prime, width, false}, r, count, k.words, counter, out};
  if (prime == 127) {
    deal_thread<Mersenne127>(job, shared);
  } else {
    deal_thread<Barrett>(job, shared);
  }
}

// dealt is null at party 1, deal_key and deal_counter unused at party 0
__global__ void mask_sign(int bits, u32 prime, int width, int party, const i64* m, const u8* delta,
                          const u8* rotation, i64 count, const u8* dealt, PRIVML_KEY(deal_key),
                          u64 deal_counter, PRIVML_KEY(mask_key), u64 mask_counter, u8* out) {
  extern __shared__ u32 shared[];
  const Key deal = PRIVML_KEY_OF(deal_key), mask = PRIVML_KEY_OF(mask_key);
  const MaskJob job = {{bits, prime, width, false},
                       party,
                       m,
                       delta,
                       rotation,
                       count,
                       dealt,
                       deal.words,
                       deal_counter,
                       mask.words,
                       mask_counter,
                       out};
  if (prime == 127) {
    mask_thread<Mersenne127>(job, shared);
  } else {
    mask_thread<Barrett>(job, shared);
  }
}

__global__ void open_sign(int bits, u32 prime, int width, const u8* first, const u8* second,
                          i64 count, u8* out) {
  const OpenJob job = {{bits, prime, width, false}, first, second, count, out};
  if (prime == 127) {
    open_thread<Mersenne127>(job);
  } else {
    open_thread<Barrett>(job);
  }
}

__global__ void selection_shares(int party, const u8* m_b, const u64* m_a, const u64* r_a,
                                 const u64* r_bit, const u64* r_product, i64 count, int bits,
                                 u64* out) {
  const i64 i = thread_index();
  if (i >= count) return;
  out[i] =
      selection_share(party, m_b[i] & 1, m_a[i], r_a[i], r_bit[i], r_product[i]) & ring_mask(bits);
}

__global__ void bit_shares(int party, const u8* m_b, const u64* r_bit, i64 count, int bits,
                           u64* out) {
  const i64 i = thread_index();
  if (i < count) out[i] = bit_share(party, m_b[i] & 1, r_bit[i]) & ring_mask(bits);
}

// One element per thread, all `kinds` tables.
__global__ void lookup_shares(const u64* turned, i64 kinds, int size, const u64* m,
                              const u64* dealt, i64 count, int bits, u64* out) {
  const i64 i = thread_index();
  if (i >= count) return;
  for (i64 kind = 0; kind < kinds; ++kind) {
    out[kind * count + i] =
        lookup_share(turned + kind * 2 * size, size, m[i], dealt + i * size) & ring_mask(bits);
  }
}

// `size` bytes out of `count` values
__global__ void pack_bytes(const u8* values, i64 count, int bits, u8* out, i64 size) {
  const i64 at = thread_index();
  if (at < size) out[at] = packed_byte(values, count, bits, at);
}

__global__ void pack_words(const u64* values, i64 count, int bits, u8* out, i64 size) {
  const i64 at = thread_index();
  if (at < size) out[at] = packed_byte(values, count, bits, at);
}

__global__ void unpack_bytes(const u8* bytes, i64 count, int bits, u8* out) {
  const i64 i = thread_index();
  if (i < count) out[i] = static_cast<u8>(unpacked_value(bytes, bits, i));
}

__global__ void unpack_words(const u8* bytes, i64 count, int bits, u64* out) {
  const i64 i = thread_index();
  if (i < count) out[i] = unpacked_value(bytes, bits, i);
}
}
