// SPDX-License-Identifier: Apache-2.0
#include "ot/refill.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "ot/schedule.h"

namespace privml::ot {
namespace {

constexpr int kSends = 0, kReceives = 1;

}  // namespace

Refill::Refill(net::Channel& channel, CotPool& sender, CotPool& receiver, OnFailure on_failure,
               i64 most)
    : channel_(channel),
      pools_{&sender, &receiver},
      on_failure_(std::move(on_failure)),
      most_(most) {
  clock_ = {channel.traffic().depth, 0};
  thread_ = std::thread([this] { run(); });
}

Refill::~Refill() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  channel_.close();
  thread_.join();
}

Refill::Counts Refill::available() const {
  const std::lock_guard lock(mutex_);
  expect_sound();
  return {announced_[kSends] - drawn_[kSends], announced_[kReceives] - drawn_[kReceives]};
}

void Refill::announce(Counts counts, PathClock since) {
  {
    const std::lock_guard lock(mutex_);
    expect_sound();
    for (int d : {kSends, kReceives}) announced_[d] += counts[d];
    jobs_.push_back({counts, since});
  }
  changed_.notify_all();
}

PathClock Refill::wait_for(Counts counts) {
  std::unique_lock lock(mutex_);
  expect_sound();
  PathClock latest;
  for (int d : {kSends, kReceives}) {
    wanted_[d] = std::max(wanted_[d], drawn_[d] + counts[d]);
    expect(wanted_[d] <= announced_[d], "Refill: waits for correlations that nobody announced");
  }
  changed_.notify_all();
  const auto there = [&] {
    return made_[kSends] >= wanted_[kSends] && made_[kReceives] >= wanted_[kReceives];
  };
  changed_.wait(lock, [&] { return failure_ || lost_ || ending_ || there(); });
  expect_sound();
  if (!there()) {
    if (lost_) std::rethrow_exception(lost_);
    throw PeerDisconnected("the connection that makes correlations was closed");
  }
  for (int d : {kSends, kReceives}) {
    if (counts[d] == 0) continue;
    const i64 last = drawn_[d] + counts[d];
    auto& batches = batches_[d];
    while (batches.front().end <= drawn_[d]) batches.pop_front();
    const auto batch = std::find_if(batches.begin(), batches.end(),
                                    [last](const Batch& each) { return each.end >= last; });
    latest = std::max(latest, batch->clock);
  }
  return latest;
}

void Refill::take(OtRole role, crypto::Block* out, i64 count) {
  const int d = role == OtRole::sender ? kSends : kReceives;
  {
    const std::lock_guard lock(mutex_);
    expect_sound();
    pools_[d]->take(out, count);
    drawn_[d] += count;
  }
  changed_.notify_all();
}

PhaseCount Refill::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

void Refill::expect_sound() const {
  if (failure_) std::rethrow_exception(failure_);
}

// Someone waits, or stock is low.
bool Refill::may_continue() const {
  if (made_[kSends] < wanted_[kSends] || made_[kReceives] < wanted_[kReceives]) return true;
  return std::max(made_[kSends] - drawn_[kSends], made_[kReceives] - drawn_[kReceives]) < most_;
}

void Refill::run() {
  try {
    make();
  } catch (const PeerDisconnected&) {
    end_with(lost_);
  } catch (...) {
    end_with(failure_);
    if (on_failure_) on_failure_(std::current_exception());
  }
}

// Within a handler.
void Refill::end_with(std::exception_ptr& kind) {
  {
    const std::lock_guard lock(mutex_);
    kind = std::current_exception();
  }
  changed_.notify_all();
}

void Refill::make() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      job = jobs_.front();
      jobs_.pop_front();
      // All at once, so that the stock moves seldom.
      const i64 tile = pools_[kSends]->tile();
      for (int d : {kSends, kReceives}) {
        pools_[d]->make_room(std::min(job.counts[d], most_ + tile));
        const i64 largest = std::min(job.counts[d], tile);
        if (std::ssize(fresh_[d]) < largest) fresh_[d].resize(static_cast<size_t>(largest));
      }
    }
    clock_ = std::max(clock_, job.since);
    channel_.set_depth(clock_.depth);
    bool ended = false;
    for_each_extension(job.counts[kSends], job.counts[kReceives], pools_[kSends]->tile(),
                       [&](i64 to_send, i64 to_receive) {
                         {
                           std::unique_lock lock(mutex_);
                           changed_.wait(lock, [&] { return ending_ || may_continue(); });
                           ended = ended || ending_;
                         }
                         if (!ended) extend({to_send, to_receive});
                       });
    if (ended) return;
  }
}

void Refill::extend(Counts counts) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const net::Traffic before = channel_.traffic();
  for (int s = 0; s <= pools_[kSends]->messages(); ++s) {
    const int d = extension_role(s) == OtRole::sender ? kSends : kReceives;
    if (counts[d] > 0) pools_[d]->step_into(s, fresh_[d].data(), counts[d]);
  }
  channel_.flush();
  const net::Traffic after = channel_.traffic();
  clock_.depth = after.depth;
  clock_.preprocess += after.depth - before.depth;
  {
    const std::lock_guard lock(mutex_);
    for (int d : {kSends, kReceives}) {
      if (counts[d] == 0) continue;
      pools_[d]->add(fresh_[d].data(), counts[d]);
      made_[d] += counts[d];
      batches_[d].push_back({made_[d], clock_});
    }
    count_.sent += after.sent - before.sent;
    count_.received += after.received - before.received;
    count_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  }
  changed_.notify_all();
}

}  // namespace privml::ot
