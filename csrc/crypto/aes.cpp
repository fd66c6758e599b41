// SPDX-License-Identifier: Apache-2.0
#include "crypto/aes.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>

#include "base/cpu.h"
#include "base/error.h"
#include "base/wipe.h"
#include "crypto/aes_kernels.h"

namespace privml::crypto {
namespace {

#if defined(__x86_64__)
constexpr bool kHardware = true;
#else
constexpr bool kHardware = false;
#endif

CpuLevel level_of(AesBackend backend) {
  constexpr CpuLevel kLevels[] = {CpuLevel::portable, CpuLevel::aesni, CpuLevel::avx2,
                                  CpuLevel::vaes, CpuLevel::avx512};
  return kLevels[static_cast<int>(backend)];
}

void encrypt_with(AesBackend backend, const Block* keys, const Block* in, Block* out, i64 count,
                  bool feedforward) {
  if constexpr (kHardware) {
    if (backend != AesBackend::portable) {
      i64 done = 0;
      if (backend == AesBackend::vaes512)
        done = aes::encrypt_vaes512(keys, in, out, count, feedforward);
      if (backend == AesBackend::vaes256)
        done = aes::encrypt_vaes256(keys, in, out, count, feedforward);
      const auto rest = backend == AesBackend::aesni ? aes::encrypt_aesni : aes::encrypt_avx2;
      rest(keys, in + done, out + done, count - done, feedforward);
      return;
    }
  }
  aes::encrypt_portable(keys, in, out, count, feedforward);
}

// How many counters were encrypted: whole groups only.
i64 count_with(AesBackend backend, const Block* keys, Block first, Block* out, i64 count) {
  if constexpr (kHardware) {
    if (first.lo > ~u64{0} - static_cast<u64>(count)) return 0;
    switch (backend) {
      case AesBackend::portable:
        return 0;
      case AesBackend::aesni:
        return aes::count_aesni(keys, first, out, count);
      case AesBackend::avx2:
        return aes::count_avx2(keys, first, out, count);
      case AesBackend::vaes256:
        return aes::count_vaes256(keys, first, out, count);
      case AesBackend::vaes512:
        return aes::count_vaes512(keys, first, out, count);
    }
  }
  return 0;
}

#if defined(__x86_64__)
// Not every compiler's builtin knows this feature. Asked once: every key set-up checks its backend,
// and virtual machines trap this instruction, for longer than a key takes.
bool has_vaes() {
  static const bool found = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 9 & 1) != 0;
  }();
  return found;
}
#endif

}  // namespace

bool aes_backend_supported(AesBackend backend) {
#if defined(__x86_64__)
  switch (backend) {
    case AesBackend::portable:
      return true;
    case AesBackend::aesni:
      return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
    case AesBackend::avx2:
      return aes_backend_supported(AesBackend::aesni) && __builtin_cpu_supports("avx2");
    case AesBackend::vaes256:
      return aes_backend_supported(AesBackend::avx2) && has_vaes();
    case AesBackend::vaes512:
      return aes_backend_supported(AesBackend::vaes256) && __builtin_cpu_supports("avx512f");
  }
  return false;
#else
  return backend == AesBackend::portable;
#endif
}

const char* aes_backend_name(AesBackend backend) {
  constexpr const char* kNames[] = {"portable", "aesni", "aesni-avx2", "vaes256", "vaes512"};
  return kNames[static_cast<int>(backend)];
}

AesBackend best_aes_backend() {
  static const AesBackend best = [] {
    for (AesBackend b :
         {AesBackend::vaes512, AesBackend::vaes256, AesBackend::avx2, AesBackend::aesni})
      if (cpu_allows(level_of(b)) && aes_backend_supported(b)) return b;
    return AesBackend::portable;
  }();
  return best;
}

Aes128::Aes128(Block key, AesBackend backend) : backend_(backend) {
  expect(aes_backend_supported(backend), "this processor does not support the AES backend");
  if constexpr (kHardware) {
    if (backend != AesBackend::portable) {
      aes::expand_key_aesni(key, round_keys_.data());
      return;
    }
  }
  aes::expand_key_portable(key, round_keys_.data());
}

Aes128::~Aes128() { wipe(round_keys_.data(), sizeof round_keys_); }

void Aes128::encrypt(const Block* in, Block* out, i64 count) const {
  encrypt_with(backend_, round_keys_.data(), in, out, count, false);
}

void Aes128::encrypt_feedforward(const Block* in, Block* out, i64 count) const {
  encrypt_with(backend_, round_keys_.data(), in, out, count, true);
}

void Aes128::encrypt_counter(Block first, Block* out, i64 count) const {
  constexpr i64 kTile = 256;
  const Block* keys = round_keys_.data();
  i64 done = count_with(backend_, keys, first, out, count);
  while (done < count) {
    const i64 n = std::min(kTile, count - done);
    for (i64 i = done; i < done + n; ++i) {
      const u64 lo = first.lo + static_cast<u64>(i);
      out[i] = {lo, first.hi + (lo < first.lo)};
    }
    encrypt_with(backend_, keys, out + done, out + done, n, false);
    done += n;
  }
}

}  // namespace privml::crypto
