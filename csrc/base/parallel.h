// SPDX-License-Identifier: Apache-2.0
// Work shared out over threads that live for one call.
#pragma once

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "base/types.h"

namespace privml {

// Calls work(first, number) for consecutive parts of `count` items, whole multiples of `unit` but
// for the last, on up to `threads` threads, the calling one included. The first exception of a part
// is thrown when all have ended.
template <class Work>
void in_parallel(i64 count, i64 unit, int threads, Work&& work) {
  const i64 units = ceil_div(count, unit);
  const i64 parts = std::clamp<i64>(threads, 1, std::max<i64>(units, 1));
  if (parts == 1) return work(i64{0}, count);
  std::vector<std::exception_ptr> errors(parts);
  const auto run = [&](i64 part) {
    const i64 first = units * part / parts * unit;
    const i64 last = std::min(units * (part + 1) / parts * unit, count);
    try {
      work(first, last - first);
    } catch (...) {
      errors[part] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (i64 part = 1; part < parts; ++part) others.emplace_back(run, part);
    run(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace privml
