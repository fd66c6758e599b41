// SPDX-License-Identifier: Apache-2.0
// For tests of channels.
#pragma once

#include <chrono>
#include <vector>

#include "base/types.h"

namespace privml::net::testing {

// For what happens at once unless something is broken.
inline constexpr std::chrono::seconds kPatience{60};

// Bytes that tell where in a message they stand.
inline std::vector<u8> pattern(size_t size, u8 start) {
  std::vector<u8> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<u8>(start + i * 7 + i / 251);
  return bytes;
}

}  // namespace privml::net::testing
