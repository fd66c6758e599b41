// SPDX-License-Identifier: Apache-2.0
#include "threepc/kernels.h"

#include <string>

#include "base/cpu.h"
#include "base/error.h"
#include "base/parallel.h"
#include "threepc/fill.h"
#include "threepc/kernel_set.h"
#include "threepc/rows.h"

namespace privml::threepc {
namespace {

const KernelSet& kernels(KernelBackend backend) {
#if defined(__x86_64__)
  if (backend == KernelBackend::avx512) return kAvx512Kernels;
  if (backend == KernelBackend::avx2) return kAvx2Kernels;
#endif
  (void)backend;
  return kPortableKernels;
}

constexpr i64 kLeast = 4;  // parts per thread at least

template <class Job>
void run(void (*loop)(const Job&, i64, i64), const Job& job, i64 parts, int threads) {
  in_parallel(parts, 1, static_cast<int>(std::min<i64>(threads, parts / kLeast)),
              [&](i64 first, i64 number) { loop(job, first, first + number); });
}

i64 groups(i64 count) { return ceil_div(count, kGroup); }

void check_loops(const Loops& loops) {
  expect(loops.threads >= 1, "threads must be at least 1");
  expect(kernel_backend_supported(loops.backend), "this processor does not support the kernels");
}

void check_party(int party) { expect(party == 0 || party == 1, "party must be 0 or 1"); }

}  // namespace

bool kernel_backend_supported(KernelBackend backend) {
#if defined(__x86_64__)
  switch (backend) {
    case KernelBackend::portable:
      return true;
    case KernelBackend::avx2:
      return __builtin_cpu_supports("avx2");
    case KernelBackend::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  }
  return false;
#else
  return backend == KernelBackend::portable;
#endif
}

KernelBackend best_kernel_backend() {
  static const KernelBackend best = [] {
    if (cpu_allows(CpuLevel::avx512) && kernel_backend_supported(KernelBackend::avx512))
      return KernelBackend::avx512;
    if (cpu_allows(CpuLevel::avx2) && kernel_backend_supported(KernelBackend::avx2))
      return KernelBackend::avx2;
    return KernelBackend::portable;
  }();
  return best;
}

SignField sign_field(int bits, int prime) {
  expect(bits >= 2 && bits <= 64, "bits must be 2 to 64");
  expect(prime > bits && prime <= 127, "the prime must be above bits and at most 127");
  for (int d = 2; d * d <= prime; ++d) expect(prime % d != 0, "the modulus is not a prime");
  int width = 1;
  while ((1 << width) < prime) ++width;
  return {bits, static_cast<u32>(prime), width, false};
}

i64 words_blocks(i64 count, int bits) { return ceil_div(count, fill_words_per(bits)) * kQuads; }
i64 bits_blocks(i64 count) { return ceil_div(count, kFillBits) * kQuads; }
i64 field_blocks(i64 count) { return ceil_div(count, kFillNumbers) * kQuads; }
i64 deal_blocks(int bits, i64 count) { return groups(count) * group_blocks(bits - 1); }
i64 mask_blocks(int bits, i64 count) { return groups(count) * 2 * group_blocks(bits); }
i64 deal_bytes(const SignField& field, i64 count) {
  return count * packed_rows(field.bits - 1, field.width);
}
i64 mask_bytes(const SignField& field, i64 count) {
  return count * packed_rows(field.bits, field.width);
}

void fill_words(const FillJob& job, const Loops& loops) {
  check_loops(loops);
  expect(job.bits >= 1 && job.bits <= 64, "bits must be 1 to 64");
  run(kernels(loops.backend).fill_words, job, ceil_div(job.count, fill_words_per(job.bits)),
      loops.threads);
}

void fill_bits(const FillJob& job, const Loops& loops) {
  check_loops(loops);
  run(kernels(loops.backend).fill_bits, job, ceil_div(job.count, kFillBits), loops.threads);
}

void fill_field(const FillJob& job, const Loops& loops) {
  check_loops(loops);
  expect(job.modulus >= 1 && job.modulus <= 128, "the modulus must be 1 to 128");
  run(kernels(loops.backend).fill_field, job, ceil_div(job.count, kFillNumbers), loops.threads);
}

void deal_sign(const DealJob& job, const Loops& loops) {
  check_loops(loops);
  run(kernels(loops.backend).deal, job, groups(job.count), loops.threads);
}

void mask_sign(const MaskJob& job, const Loops& loops) {
  check_loops(loops);
  check_party(job.party);
  expect(job.count == 0 || (job.party == 0 ? job.dealt != nullptr : job.deal_key != nullptr),
         "party 0 needs the dealt list, party 1 the key it was dealt with");
  run(kernels(loops.backend).mask, job, groups(job.count), loops.threads);
}

void open_sign(const OpenJob& job, const Loops& loops) {
  check_loops(loops);
  run(kernels(loops.backend).open, job, groups(job.count), loops.threads);
}

}  // namespace privml::threepc
