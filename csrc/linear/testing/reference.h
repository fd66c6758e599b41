// SPDX-License-Identifier: Apache-2.0
// What the tests of ring products share.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "linear/product.h"

namespace privml::linear {

inline std::vector<Backend> backends() {
  std::vector<Backend> list;
  for (Backend backend : {Backend::portable, Backend::avx2, Backend::avx512})
    if (backend_supported(backend)) list.push_back(backend);
  return list;
}

// Random words with extreme ones among them.
inline std::vector<u64> test_words(i64 count, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<u64> words(count);
  for (u64& word : words) {
    const u64 value = random();
    word =
        value % 8 ? value : std::array{u64{0}, ~u64{0}, u64{1} << 63, u64{1} << 31}[value / 8 % 4];
  }
  return words;
}

}  // namespace privml::linear
