// SPDX-License-Identifier: Apache-2.0
#include "linear/packing.h"

#include <algorithm>
#include <array>

#include "base/multiversion.h"

namespace privml::linear {
namespace {

constexpr i64 kMaxLanes = 64;
constexpr i64 kSteps = 8;  // one cache line of every lane at a time

// Lanes that follow each other in memory.
struct Run {
  i64 first, count, offset;
};

struct Runs {
  std::array<Run, kMaxLanes> run;
  i64 count = 0;
};

Runs runs_of(std::span<const i64> lanes) {
  Runs runs;
  for (i64 l = 0; l < std::ssize(lanes); ++l) {
    if (l > 0 && lanes[l] == lanes[l - 1] + 1) {
      ++runs.run[runs.count - 1].count;
    } else {
      runs.run[runs.count++] = {l, 1, lanes[l]};
    }
  }
  return runs;
}

template <class Word>
[[gnu::always_inline]] inline void copy_runs(const u64* words, const Runs& runs,
                                             std::span<const i64> steps, i64 width, Word* out) {
  for (const i64 step : steps) {
    for (i64 r = 0; r < runs.count; ++r) {
      const Run& run = runs.run[r];
      const u64* from = words + step + run.offset;
      Word* to = out + run.first;
      for (i64 i = 0; i < run.count; ++i) to[i] = static_cast<Word>(from[i]);
    }
    out += width;
  }
}

// Reads a cache line of every lane at a time where the steps follow each other.
template <class Word>
[[gnu::always_inline]] inline void turn(const u64* words, std::span<const i64> lanes,
                                        std::span<const i64> steps, i64 width, Word* out) {
  for (i64 s = 0; s < std::ssize(steps); s += kSteps, out += kSteps * width) {
    const i64 count = std::min(kSteps, std::ssize(steps) - s);
    const bool dense = count == kSteps && steps[s + kSteps - 1] - steps[s] == kSteps - 1 &&
                       std::is_sorted(&steps[s], &steps[s] + kSteps);
    for (i64 l = 0; l < std::ssize(lanes); ++l) {
      const u64* from = words + lanes[l];
      if (dense) {
        from += steps[s];
#pragma GCC unroll 8
        for (i64 i = 0; i < kSteps; ++i) out[i * width + l] = static_cast<Word>(from[i]);
      } else {
        for (i64 i = 0; i < count; ++i) out[i * width + l] = static_cast<Word>(from[steps[s + i]]);
      }
    }
  }
}

template <class Word>
[[gnu::always_inline]] inline void pack_panel(const u64* words, std::span<const i64> lanes,
                                              const Runs& runs, std::span<const i64> steps,
                                              i64 width, Word* out) {
  if (4 * runs.count <= std::ssize(lanes)) {
    copy_runs(words, runs, steps, width, out);
  } else {
    turn(words, lanes, steps, width, out);
  }
  const i64 rest = width - std::ssize(lanes);
  for (i64 s = 0; rest > 0 && s < std::ssize(steps); ++s)
    std::fill_n(out + s * width + std::ssize(lanes), rest, Word{0});
}

PRIVML_TARGET_CLONES
void pack32(const u64* words, std::span<const i64> lanes, const Runs& runs,
            std::span<const i64> steps, i64 width, u32* out) {
  pack_panel(words, lanes, runs, steps, width, out);
}
PRIVML_TARGET_CLONES
void pack64(const u64* words, std::span<const i64> lanes, const Runs& runs,
            std::span<const i64> steps, i64 width, u64* out) {
  pack_panel(words, lanes, runs, steps, width, out);
}

}  // namespace

bool follow_each_other(std::span<const i64> offsets) {
  return offsets.back() - offsets.front() == std::ssize(offsets) - 1 &&
         std::is_sorted(offsets.begin(), offsets.end());
}

template <>
void pack(const u64* words, std::span<const i64> lanes, std::span<const i64> steps, i64 width,
          u32* out) {
  pack32(words, lanes, runs_of(lanes), steps, width, out);
}
template <>
void pack(const u64* words, std::span<const i64> lanes, std::span<const i64> steps, i64 width,
          u64* out) {
  pack64(words, lanes, runs_of(lanes), steps, width, out);
}

}  // namespace privml::linear
