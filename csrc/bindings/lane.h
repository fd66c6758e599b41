// SPDX-License-Identifier: Apache-2.0
// One lane of a session: a channel with its own correlations, or the meter that stands for it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "net/tagged.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "ot/refill.h"
#include "ot/setup.h"

namespace privml::bindings {

// What the depth clocks say, by rank: all hops of the longest path so far, and those of them that
// made correlations. A connected lane knows its own party's only, a meter both, and the seconds
// that its link has taken.
struct LaneClock {
  std::array<i64, 2> depth{};
  std::array<i64, 2> preprocess{};
  std::array<double, 2> seconds{};
};

// For each party the longer path.
LaneClock later(const LaneClock& a, const LaneClock& b);

struct LaneCount {
  std::array<ot::PhaseCount, 3> phases{};
  i64 cots_as_sender = 0;
  i64 cots_as_receiver = 0;
};

// Bytes and correlations add up over lanes; depth is that of the longest path and seconds those of
// the busiest lane.
LaneCount together(const LaneCount& a, const LaneCount& b);

class Lane {
 public:
  // Sets up on connected channels; the depth clock starts at 0. With a second channel, its
  // correlations are made there (refill.h), and `on_failure` learns what goes wrong with that.
  Lane(std::shared_ptr<net::Channel> channel, std::shared_ptr<net::Channel> refill_channel,
       int rank, const ot::OtConfig& config, const ot::Refill::OnFailure& on_failure = {});
  // A meter.
  Lane(int rank, const ot::RcotCost& rcot, bool refill);
  void set_planning(i64 chunk_factor, bool ciphertexts);

  bool metering() const { return meter_.has_value(); }
  ot::Party& party() { return *party_; }
  ot::CostMeter& meter() { return *meter_; }
  net::Channel& channel() { return *channel_; }
  // Tags of what the lane's own channel carries (net/tagged.h); a meter has none.
  void set_account(std::shared_ptr<const net::Account> account);
  void set_tag(u64 tag);

  LaneClock clock() const;
  // Lets the clock go on from `at_least` if that is a longer path.
  void advance(const LaneClock& at_least);

  // After a call of `seconds`: what was written leaves, and count() shows the call.
  void finish(double seconds);
  // As of the last finished call; any thread may ask.
  LaneCount count() const;

  // Ends what reads from the channel; any thread may call it.
  void close();
  void wipe();

  std::atomic<bool> busy = false;

 private:
  LaneCount measured() const;
  LaneCount metered() const;

  int rank_;
  std::shared_ptr<net::Channel> channel_;
  net::Tagged* tagged_ = nullptr;  // the same
  net::Traffic opened_;            // what crossed the channel before the session
  std::shared_ptr<net::Channel> refill_channel_;
  std::unique_ptr<ot::PartyResources> resources_;
  std::unique_ptr<ot::Refill> refill_;
  std::optional<ot::Party> party_;  // on the lane's channel, with its refill
  std::optional<ot::CostMeter> meter_;
  std::array<i64, 2> setup_bytes_{}, setup_depth_{};  // of the meter
  double seconds_ = 0;                                // in calls, preprocessing included
  mutable std::mutex mutex_;                          // guards what follows, and refill_'s end
  LaneCount count_;
  ot::PhaseCount refilled_;  // by a refill that has ended
};

}  // namespace privml::bindings
