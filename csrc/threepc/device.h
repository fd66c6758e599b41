// SPDX-License-Identifier: Apache-2.0
// Definitions that let one header run on a CPU and on a CUDA device. Functions work on "lane words"
// W: u32 holds 4 byte lanes (four neighbouring elements, one CUDA thread); a vector of u32 holds as
// many such quads, so that the same text becomes AVX-512, AVX2, SSE2 or CUDA code. The headers of
// this folder that include only this one are device headers: no standard library, everything in
// unnamed namespaces, because each is compiled for several instruction sets.
#pragma once

#ifdef __CUDACC__
#define PRIVML_DEVICE __device__ __forceinline__
#define PRIVML_DEVICE_ONCE PRIVML_DEVICE
#define PRIVML_UNROLL _Pragma("unroll")
#define PRIVML_ROLLED _Pragma("unroll 1")
#else
#include <cstdint>
#include <cstring>
#define PRIVML_DEVICE [[gnu::always_inline]] inline
// Compiled once for all its callers in a file, because it is long and a call costs it little.
#define PRIVML_DEVICE_ONCE [[gnu::noinline]] inline
#define PRIVML_UNROLL _Pragma("GCC unroll 16")
#define PRIVML_ROLLED
#endif

namespace privml {
#ifdef __CUDACC__
using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;
#else
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
#endif
}  // namespace privml

namespace privml::threepc {
namespace {

// One bit per byte lane: the lowest, the highest.
constexpr u32 kLaneOne = 0x01010101u;
constexpr u32 kLaneTop = 0x80808080u;

// Elements that are kept together: 16 quads, one 512-bit register of bytes. Lists are stored group
// by group, and in a group row by row.
constexpr int kGroup = 64;
constexpr int kQuads = kGroup / 4;

template <class W>
constexpr int kQuadsOf = sizeof(W) / sizeof(u32);

template <class W>
PRIVML_DEVICE W splat(u32 value) {
  return W{} + value;
}

template <class W>
PRIVML_DEVICE W load_quads(const u32* words) {
#ifdef __CUDACC__
  return *words;
#else
  W value;
  std::memcpy(&value, words, sizeof value);
  return value;
#endif
}

template <class W>
PRIVML_DEVICE void store_quads(u32* words, const W& value) {
#ifdef __CUDACC__
  *words = value;
#else
  std::memcpy(words, &value, sizeof value);
#endif
}

// Whether any bit of any lane is set.
template <class W>
PRIVML_DEVICE bool any(const W& value) {
  u32 words[kQuadsOf<W>];
  store_quads(words, value);
  u32 joined = 0;
  for (int q = 0; q < kQuadsOf<W>; ++q) joined |= words[q];
  return joined != 0;
}

// 0xff in every lane whose lowest bit is set; the other bits must be zero.
template <class W>
PRIVML_DEVICE W spread(const W& ones) {
  return (ones << 8) - ones;
}

// second if a lane of mask is 0xff, first if it is zero.
template <class W>
PRIVML_DEVICE W select(const W& mask, const W& first, const W& second) {
  return first ^ ((first ^ second) & mask);
}

}  // namespace
}  // namespace privml::threepc
