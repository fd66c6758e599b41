// SPDX-License-Identifier: Apache-2.0
// The kernels of the three-party engine on a CPU: the fastest instruction set that the processor
// supports, on `threads` threads. The formulas are in the device headers (fill.h, sign.h, ring.h),
// the records in jobs.h. All arrays are the caller's; results never overlap operands. Every
// function throws InvalidArgument for parameters out of range before it writes anything.
#pragma once

#include "base/types.h"
#include "threepc/jobs.h"

namespace privml::threepc {

enum class KernelBackend { portable, avx2, avx512 };
bool kernel_backend_supported(KernelBackend backend);
KernelBackend best_kernel_backend();

struct Loops {
  int threads = 1;
  KernelBackend backend = best_kernel_backend();
};

// bits 2..64, prime with bits < prime <= 127.
SignField sign_field(int bits, int prime);

// Blocks of the counter that a call consumes, a public number.
i64 words_blocks(i64 count, int bits);
i64 bits_blocks(i64 count);
i64 field_blocks(i64 count);
i64 deal_blocks(int bits, i64 count);
i64 mask_blocks(int bits, i64 count);

// Bytes of the lists on the wire: count * ceil(rows * width / 8).
i64 deal_bytes(const SignField& field, i64 count);
i64 mask_bytes(const SignField& field, i64 count);

void fill_words(const FillJob& job, const Loops& loops = {});
void fill_bits(const FillJob& job, const Loops& loops = {});
void fill_field(const FillJob& job, const Loops& loops = {});
void deal_sign(const DealJob& job, const Loops& loops = {});
void mask_sign(const MaskJob& job, const Loops& loops = {});
void open_sign(const OpenJob& job, const Loops& loops = {});

// Element-wise, see ring.h; results are in [0, 2^bits).
void selection_shares(int party, const u8* m_b, const u64* m_a, const u64* r_a, const u64* r_bit,
                      const u64* r_product, i64 count, int bits, u64* out, int threads = 1);
void bit_shares(int party, const u8* m_b, const u64* r_bit, i64 count, int bits, u64* out,
                int threads = 1);
// `kinds` tables of `size` entries, turned (see ring.h); dealt: count * size; out: kinds * count.
void lookup_shares(const u64* turned, i64 kinds, int size, const u64* m, const u64* dealt,
                   i64 count, int bits, u64* out, int threads = 1);

// The low `bits` bits of `rows` rows of `count` words, lowest first and eight elements to a byte:
// out[(bit * rows + row) * ceil(count / 8) + i / 8], bit i % 8.
void bit_planes(const u64* words, i64 rows, i64 count, int bits, u8* out, int threads = 1);

// The uniform words of a key from block `counter` on, as fill_words makes them.
struct KeyPlace {
  const u32* key;
  u64 counter;
};

// What goes before and after a message that opens or deals ring elements, each as one call; see
// privml/engines/threepc/party.py. Parties 0 and 1: mask = the key's words, masked = part + mask,
// wire = its low bits, packed.
void mask_words(KeyPlace place, const u64* part, i64 count, int bits, u64* mask, u64* masked,
                u8* wire, int threads);
// Party 2: the low bits of values - the key's words, packed.
void deal_packed(KeyPlace place, const u64* values, i64 count, int bits, u8* wire, int threads);
// sums = words + what was packed in wire.
void add_packed(const u64* words, const u8* wire, i64 count, int bits, u64* sums);

}  // namespace privml::threepc
