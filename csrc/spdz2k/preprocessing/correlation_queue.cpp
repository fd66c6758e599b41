// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/correlation_queue.h"

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
void CorrelationQueue<R>::add(i64 n) {
  const i64 stock = available();
  for_each_column([&](auto& column, i64 per) {
    move_to_front(column.value, first_ * per, last_ * per, (stock + n) * per);
    move_to_front(column.mac, first_ * per, last_ * per, (stock + n) * per);
  });
  first_ = 0;
  last_ = stock + n;
}

template <class R>
void CorrelationQueue<R>::drop(i64 n) {
  expect(0 <= n && n <= available(), "correlation queue: fewer correlations in stock");
  for_each_column([&](auto& column, i64 per) {
    wipe_part(column.value, first_ * per, n * per);
    wipe_part(column.mac, first_ * per, n * per);
  });
  first_ += n;
}

template <class R>
i64 CorrelationQueue<R>::bytes(i64 n) const {
  i64 words = 0;
  for (const i64 per : per_) words += per;
  const i64 bits = std::ssize(bits_);
  return 2 * n * (words * i64{sizeof(typename R::Word)} + bits * i64{sizeof(typename R::BitWord)});
}

template <class R>
bool CorrelationQueue<R>::fits(i64 n, i64 size) const {
  return 0 <= n && n <= size / bytes(1) && size == bytes(n);  // no product beyond `size`
}

template <class R>
void CorrelationQueue<R>::take_bytes(i64 n, MutableBytes out) {
  expect(n <= available() && fits(n, std::ssize(out)), "correlation queue: wrong number of bytes");
  u8* at = out.data();
  for_each_column([&](const auto& column, i64 per) {
    for (const auto* words : {&column.value, &column.mac}) {
      const std::size_t size = static_cast<std::size_t>(n * per) * sizeof((*words)[0]);
      if (size > 0) std::memcpy(at, words->data() + first_ * per, size);
      at += size;
    }
  });
  drop(n);
}

template <class R>
void CorrelationQueue<R>::put_bytes(i64 n, Bytes in) {
  expect(fits(n, std::ssize(in)), "correlation queue: wrong number of bytes");
  add(n);
  const u8* at = in.data();
  for_each_column([&](auto& column, i64 per) {
    for (auto* words : {&column.value, &column.mac}) {
      const std::size_t size = static_cast<std::size_t>(n * per) * sizeof((*words)[0]);
      if (size > 0) std::memcpy(words->data() + (last_ - n) * per, at, size);
      at += size;
    }
  });
}

#define PRIVML_INSTANTIATE(R) template class CorrelationQueue<R>;
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
