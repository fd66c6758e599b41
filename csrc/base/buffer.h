// SPDX-License-Identifier: Apache-2.0
// A vector whose storage is aligned to cache lines and not touched on resize.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace privml {

template <class T>
struct UninitializedAlignedAllocator {
  using value_type = T;
  UninitializedAlignedAllocator() = default;
  template <class U>
  UninitializedAlignedAllocator(const UninitializedAlignedAllocator<U>&) {}
  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
  template <class U>
  void construct(U* p) noexcept {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  friend bool operator==(const UninitializedAlignedAllocator&,
                         const UninitializedAlignedAllocator&) {
    return true;
  }
};

template <class T>
using AlignedVector = std::vector<T, UninitializedAlignedAllocator<T>>;

}  // namespace privml
