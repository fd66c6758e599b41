// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/recycled.h"

#include <bit>
#include <map>
#include <new>

#include "base/buffer.h"

namespace privml::spdz2k {
namespace {

constexpr std::size_t kSmallest = std::size_t{1} << 14;  // below, the system's allocator is fast
constexpr std::size_t kMostKept = std::size_t{1} << 28;  // bytes per thread

// Sizes are rounded up to four steps per power of two, so that blocks fit again.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

void* allocate(std::size_t bytes) { return ::operator new(bytes, std::align_val_t{kCacheLine}); }
void release(void* block, std::size_t bytes) {
  wipe(block, bytes);
  ::operator delete(block, std::align_val_t{kCacheLine});
}

struct Kept {
  ~Kept() {
    gone = true;
    for (auto& [size, list] : blocks) {
      for (void* block : list) release(block, size);
    }
  }
  std::map<std::size_t, std::vector<void*>> blocks;
  std::size_t bytes = 0;
  // Objects of the thread may end after its list.
  static thread_local bool gone;
};

thread_local bool Kept::gone = false;
thread_local Kept kept;

}  // namespace

void* take_block(std::size_t bytes) {
  if (bytes < kSmallest || Kept::gone) return allocate(bytes);
  const std::size_t size = rounded(bytes);
  const auto at = kept.blocks.find(size);
  if (at == kept.blocks.end() || at->second.empty()) return allocate(size);
  void* block = at->second.back();
  at->second.pop_back();
  kept.bytes -= size;
  return block;
}

void give_back_block(void* block, std::size_t bytes) {
  if (bytes < kSmallest || Kept::gone) return release(block, bytes);
  const std::size_t size = rounded(bytes);
  if (kept.bytes + size > kMostKept) return release(block, size);
  kept.blocks[size].push_back(block);
  kept.bytes += size;
}

}  // namespace privml::spdz2k
