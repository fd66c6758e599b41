// SPDX-License-Identifier: Apache-2.0
#include "twopc/session/lanes.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace privml::twopc {

std::vector<LaneRange> divide_over_lanes(i64 n, i64 lanes, i64 least) {
  expect(n >= 0 && lanes >= 1 && least >= 1, "divide_over_lanes: impossible numbers");
  constexpr i64 kWord = 64;
  const i64 used = std::clamp<i64>(n / least, 1, lanes);
  i64 step = ceil_div(n, used);
  if (step >= 16 * kWord) step = ceil_div(step, kWord) * kWord;
  std::vector<LaneRange> ranges;
  for (i64 begin = 0; begin < n; begin += step)
    ranges.push_back({begin, std::min(step, n - begin)});
  if (ranges.empty()) ranges.push_back({0, n});
  return ranges;
}

void run_on_lanes(i64 count, const std::function<void(i64)>& body,
                  const std::function<void(i64)>& on_failure) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto guarded = [&](i64 lane) {
    try {
      body(lane);
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      on_failure(lane);
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(std::max<i64>(count - 1, 0)));
  try {
    for (i64 lane = 1; lane < count; ++lane) threads.emplace_back(guarded, lane);
    if (count > 0) guarded(0);
  } catch (...) {
    on_failure(-1);
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace privml::twopc
