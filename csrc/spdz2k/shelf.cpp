// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shelf.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/wipe.h"

namespace privml::spdz2k {
namespace {

// A vector of `room` words whose first ones are words[first, last) of the old one, which is wiped.
template <class Words>
void move_to_front(Words& words, i64 first, i64 last, i64 room) {
  Words fresh(room);
  std::copy(words.begin() + first, words.begin() + last, fresh.begin());
  words = std::move(fresh);
}

template <class Words>
void wipe_part(Words& words, i64 first, i64 n) {
  wipe(words.data() + first, static_cast<std::size_t>(n) * sizeof(words[0]));
}

}  // namespace

template <class R>
void Shelf<R>::add(i64 n) {
  const i64 stock = available();
  const auto grow = [&](auto& columns) {
    for (auto& column : columns) {
      move_to_front(column.value, first_, last_, stock + n);
      move_to_front(column.mac, first_, last_, stock + n);
    }
  };
  grow(words_);
  grow(bits_);
  first_ = 0;
  last_ = stock + n;
}

template <class R>
void Shelf<R>::drop(i64 n) {
  expect(0 <= n && n <= available(), "shelf: fewer correlations in stock");
  const auto forget = [&](auto& columns) {
    for (auto& column : columns) {
      wipe_part(column.value, first_, n);
      wipe_part(column.mac, first_, n);
    }
  };
  forget(words_);
  forget(bits_);
  first_ += n;
}

template <class R>
i64 Shelf<R>::bytes(i64 n) const {
  const i64 words = std::ssize(words_), bits = std::ssize(bits_);
  return 2 * n * (words * i64{sizeof(typename R::Word)} + bits * i64{sizeof(typename R::BitWord)});
}

template <class R>
void Shelf<R>::take_bytes(i64 n, MutableBytes out) {
  expect(n <= available() && std::ssize(out) == bytes(n), "shelf: wrong number of bytes");
  u8* at = out.data();
  const auto append = [&](const auto& column) {
    for (const auto* words : {&column.value, &column.mac}) {
      const std::size_t size = static_cast<std::size_t>(n) * sizeof((*words)[0]);
      if (size > 0) std::memcpy(at, words->data() + first_, size);
      at += size;
    }
  };
  for (const auto& column : words_) append(column);
  for (const auto& column : bits_) append(column);
  drop(n);
}

template <class R>
void Shelf<R>::put_bytes(i64 n, Bytes in) {
  expect(n >= 0 && std::ssize(in) == bytes(n), "shelf: wrong number of bytes");
  add(n);
  const u8* at = in.data();
  const auto fill = [&](auto& column) {
    for (auto* words : {&column.value, &column.mac}) {
      const std::size_t size = static_cast<std::size_t>(n) * sizeof((*words)[0]);
      if (size > 0) std::memcpy(words->data() + (last_ - n), at, size);
      at += size;
    }
  };
  for (auto& column : words_) fill(column);
  for (auto& column : bits_) fill(column);
}

#define PRIVML_INSTANTIATE(R) template class Shelf<R>;
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
