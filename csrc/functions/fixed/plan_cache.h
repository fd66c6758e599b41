// SPDX-License-Identifier: Apache-2.0
// Tables and plans are made once per pair of formats. They depend on public formats only, so
// caching them changes no result and reveals nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "functions/fixed/format.h"

namespace privml {

template <class Plan>
class PlanCache {
 public:
  // The plan of function number `function` for these formats; `make` makes it at the first call.
  // Exceptions of `make` go to the caller.
  std::shared_ptr<const Plan> get(int function, FixedFormat in, FixedFormat out,
                                  const std::function<Plan()>& make) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<const Plan>& plan = plans_[{function, in.bits, in.scale, out.bits, out.scale}];
    if (!plan) plan = std::make_shared<const Plan>(make());
    return plan;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, int, int, int>, std::shared_ptr<const Plan>> plans_;
};

}  // namespace privml
