// SPDX-License-Identifier: Apache-2.0
#include "crypto/aes.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>

#include "base/cpu.h"
#include "base/error.h"
#include "base/wipe.h"
#include "crypto/aes_kernels.h"

namespace privml::crypto {
namespace {

CpuLevel level_of(AesBackend backend) {
  constexpr CpuLevel kLevels[] = {CpuLevel::portable, CpuLevel::aesni, CpuLevel::aesni,
                                  CpuLevel::avx2,     CpuLevel::vaes,  CpuLevel::avx512};
  return kLevels[static_cast<int>(backend)];
}

using Encrypt = i64 (*)(const Block* keys, const Block* in, Block* out, i64 count,
                        bool feedforward);

struct Kernels {
  void (*expand_key)(Block key, Block* keys);
  Encrypt groups;  // none, or what goes before `all` and leaves it the blocks that fill no group
  Encrypt all;
  i64 (*count)(const Block* keys, Block first, Block* out, i64 count);  // none, or whole groups
};

// Those of a backend that this processor supports.
const Kernels& kernels_of([[maybe_unused]] AesBackend backend) {
  static constexpr Kernels kPortable{aes::expand_key_portable, nullptr, aes::encrypt_portable,
                                     nullptr};
#if defined(__x86_64__)
  static constexpr Kernels kAesni{aes::expand_key_aesni, nullptr, aes::encrypt_aesni,
                                  aes::count_aesni};
  static constexpr Kernels kAvx2{aes::expand_key_aesni, nullptr, aes::encrypt_avx2,
                                 aes::count_avx2};
  static constexpr Kernels kVaes256{aes::expand_key_aesni, aes::encrypt_vaes256, aes::encrypt_avx2,
                                    aes::count_vaes256};
  static constexpr Kernels kVaes512{aes::expand_key_aesni, aes::encrypt_vaes512, aes::encrypt_avx2,
                                    aes::count_vaes512};
  if (backend == AesBackend::aesni) return kAesni;
  if (backend == AesBackend::avx2) return kAvx2;
  if (backend == AesBackend::vaes256) return kVaes256;
  if (backend == AesBackend::vaes512) return kVaes512;
#elif defined(__aarch64__)
  static constexpr Kernels kNeon{aes::expand_key_neon, nullptr, aes::encrypt_neon, aes::count_neon};
  if (backend == AesBackend::neon) return kNeon;
#endif
  return kPortable;
}

void encrypt_with(const Kernels& kernels, const Block* keys, const Block* in, Block* out, i64 count,
                  bool feedforward) {
  const i64 done = kernels.groups ? kernels.groups(keys, in, out, count, feedforward) : 0;
  kernels.all(keys, in + done, out + done, count - done, feedforward);
}

// How many counters were encrypted: whole groups only.
i64 count_with(const Kernels& kernels, const Block* keys, Block first, Block* out, i64 count) {
  if (!kernels.count || first.lo > ~u64{0} - static_cast<u64>(count)) return 0;
  return kernels.count(keys, first, out, count);
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
    case AesBackend::neon:
      return false;
    case AesBackend::aesni:
      return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
    case AesBackend::avx2:
      return aes_backend_supported(AesBackend::aesni) && __builtin_cpu_supports("avx2");
    case AesBackend::vaes256:
      return aes_backend_supported(AesBackend::avx2) && has_vaes();
    case AesBackend::vaes512:
      return aes_backend_supported(AesBackend::vaes256) && __builtin_cpu_supports("avx512f");
  }
#elif defined(__aarch64__)
  if (backend == AesBackend::neon) return (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#endif
  return backend == AesBackend::portable;
}

const char* aes_backend_name(AesBackend backend) {
  constexpr const char* kNames[] = {"portable",   "neon",    "aesni",
                                    "aesni-avx2", "vaes256", "vaes512"};
  return kNames[static_cast<int>(backend)];
}

AesBackend best_aes_backend() {
  static const AesBackend best = [] {
    AesBackend fastest = AesBackend::portable;
    for (AesBackend each : kAesBackends)
      if (cpu_allows(level_of(each)) && aes_backend_supported(each)) fastest = each;
    return fastest;
  }();
  return best;
}

Aes128::Aes128(Block key, AesBackend backend) : backend_(backend) {
  expect(aes_backend_supported(backend), "this processor does not support the AES backend");
  kernels_of(backend).expand_key(key, round_keys_.data());
}

Aes128::~Aes128() { wipe(round_keys_.data(), sizeof round_keys_); }

void Aes128::encrypt(const Block* in, Block* out, i64 count) const {
  encrypt_with(kernels_of(backend_), round_keys_.data(), in, out, count, false);
}

void Aes128::encrypt_feedforward(const Block* in, Block* out, i64 count) const {
  encrypt_with(kernels_of(backend_), round_keys_.data(), in, out, count, true);
}

void Aes128::encrypt_counter(Block first, Block* out, i64 count) const {
  constexpr i64 kTile = 256;
  const Block* keys = round_keys_.data();
  const Kernels& kernels = kernels_of(backend_);
  i64 done = count_with(kernels, keys, first, out, count);
  while (done < count) {
    const i64 n = std::min(kTile, count - done);
    for (i64 i = done; i < done + n; ++i) {
      const u64 lo = first.lo + static_cast<u64>(i);
      out[i] = {lo, first.hi + (lo < first.lo)};
    }
    encrypt_with(kernels, keys, out + done, out + done, n, false);
    done += n;
  }
}

}  // namespace privml::crypto
