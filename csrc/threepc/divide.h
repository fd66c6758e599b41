// SPDX-License-Identifier: Apache-2.0
// Loops over independent parts, divided over threads.
#pragma once

#include <algorithm>
#include <thread>
#include <vector>

#include "base/types.h"

namespace privml::threepc {

// work(begin, end) on neighbouring runs that cover [0, parts), one per thread and none shorter than
// `least` parts. The work must not throw.
template <class Work>
void divide(i64 parts, int threads, i64 least, const Work& work) {
  const i64 runs = std::clamp<i64>(parts / least, 1, threads);
  std::vector<std::jthread> others;
  for (i64 run = 1; run < runs; ++run)
    others.emplace_back([&, run] { work(parts * run / runs, parts * (run + 1) / runs); });
  if (parts > 0) work(0, parts / runs);
}

}  // namespace privml::threepc
