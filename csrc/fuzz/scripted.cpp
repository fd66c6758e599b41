// SPDX-License-Identifier: Apache-2.0
#include "fuzz/scripted.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace privml::fuzz {
namespace {

constexpr size_t kChangeBytes = 8;
constexpr size_t kMostChanges = 64;

size_t number(Bytes three) {
  return size_t{three[0]} | size_t{three[1]} << 8 | size_t{three[2]} << 16;
}

void apply(std::vector<u8>& script, Bytes change) {
  const size_t size = size_t{change[1]} + 1;
  const size_t at = script.empty() ? 0 : number(change.subspan(2, 3)) % script.size();
  const size_t end = std::min(script.size(), at + size);
  const Bytes value = change.last(3);
  const auto place = script.begin() + static_cast<std::ptrdiff_t>(at);
  const auto place_end = script.begin() + static_cast<std::ptrdiff_t>(end);
  switch (change[0] % 8) {
    case 0:
      for (size_t i = at; i < end && i < at + 3; ++i) script[i] ^= value[i - at];
      break;
    case 1:
      std::fill(place, place_end, value[0]);
      break;
    case 2:
      std::fill(place, place_end, u8{0});
      break;
    case 3:
      std::fill(place, place_end, u8{0xff});
      break;
    case 4:
      script.insert(place, size, value[0]);
      break;
    case 5:
      script.erase(place, place_end);
      break;
    case 6: {
      const size_t from = script.empty() ? 0 : number(value) % script.size();
      for (size_t i = 0; i < end - at && from + i < script.size(); ++i)
        script[at + i] = script[from + i];
      break;
    }
    default:
      script.resize(at);
  }
}

}  // namespace

void ScriptedChannel::read(MutableBytes bytes) {
  if (bytes.empty()) return;
  if (closed_ || bytes.size() > script_.size())
    throw PeerDisconnected("the script of the peer has ended");
  std::memcpy(bytes.data(), script_.data(), bytes.size());
  script_ = script_.subspan(bytes.size());
  traffic_.received += std::ssize(bytes);
}

std::vector<u8> edited(std::vector<u8> script, Bytes changes) {
  const size_t count = std::min(kMostChanges, changes.size() / kChangeBytes);
  for (size_t i = 0; i < count; ++i) {
    apply(script, changes.subspan(i * kChangeBytes, kChangeBytes));
  }
  return script;
}

}  // namespace privml::fuzz
