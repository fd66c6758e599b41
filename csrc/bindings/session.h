// SPDX-License-Identifier: Apache-2.0
// One party's session as Python holds it: runs protocols without the interpreter lock, or only
// meters them.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/lane.h"
#include "twopc/session/lanes.h"

namespace privml::bindings {

// All lanes of a session, or one of them (`lane`): a view that shares everything else. Opens on
// connected channels, or without any as a meter: then protocols return zeros and their cost
// functions are booked instead. A failed protocol leaves the two parties out of step, so it ends
// the session on all lanes, and calls that run on other lanes end with the same error. A peer that
// is caught by a refill's thread ends it at once, too: every call that runs or comes later throws
// that error.
class TwoPartySession {
 public:
  using Channels = std::vector<std::shared_ptr<net::Channel>>;
  // One lane per channel; they are set up side by side. Each lane has offsets and keys of its own,
  // so that no secret and no hash input is common to two threads. With as many refill channels,
  // each lane's correlations are made on one of these.
  TwoPartySession(const Channels& channels, int rank, const ot::OtConfig& config,
                  const Channels& refills = {});
  // A meter; `counts_only` tells the caller that values, which are zeros, are not looked at.
  TwoPartySession(int rank, const ot::OtConfig& config, int lanes, bool refill = false,
                  bool counts_only = false);

  int rank() const { return shared_->rank; }
  bool metering() const { return shared_->metering; }
  bool counts_only() const { return shared_->counts_only; }
  int lanes() const { return count_; }
  const ot::OtConfig& config() const { return shared_->config; }  // without its secrets
  TwoPartySession lane(int index) const;
  // A meter of one lane that plans like this session, from party 0's side, for counts only.
  TwoPartySession twin() const;
  // Party::chunk_factor and Party::ciphertexts of all lanes. Before any call.
  void set_planning(i64 chunk_factor, bool ciphertexts);

  // protocol(party) on a connected session's first lane, cost(meter) on a meter's.
  void run(const std::function<void(ot::Party&)>& protocol,
           const std::function<void(ot::CostMeter&)>& cost);
  // The same on ranges of n elements: one per lane if there are enough.
  void run_divided(i64 n, const std::function<void(ot::Party&, twopc::LaneRange)>& protocol,
                   const std::function<void(ot::CostMeter&, twopc::LaneRange)>& cost);
  // The same on parts that the caller has divided; at most one per lane.
  void run_parts(const std::vector<twopc::LaneRange>& parts,
                 const std::function<void(ot::Party&, twopc::LaneRange)>& protocol,
                 const std::function<void(ot::CostMeter&, twopc::LaneRange)>& cost);

  // What these lanes compute from here on (net/tagged.h); nothing on a meter or a closed session.
  void set_account(const std::shared_ptr<const net::Account>& account);
  void set_tag(u64 tag);

  // The longest path so far on these lanes; what comes next on them starts at `at_least` or later.
  LaneClock clock();
  void advance(const LaneClock& at_least);

  // Ends the session on all lanes and wipes its keys; a protocol running in another thread ends
  // with PeerDisconnected and its lane's keys go with it. Throws what a refill has caught and no
  // call has thrown yet.
  void close();
  // {"setup" | "preprocess" | "online": {seconds, sent, received, depth}, cots_as_sender,
  // cots_as_receiver} as of the last finished calls.
  py::dict counters() const;

 private:
  struct Shared {
    int rank = 0;
    bool metering = false, counts_only = false;
    i64 chunk_factor = 1;
    bool ciphertexts = false;
    ot::OtConfig config;  // without its secrets
    std::vector<std::unique_ptr<Lane>> lanes;
    std::atomic<bool> closed = false;
    std::mutex mutex;  // guards what follows
    std::exception_ptr first;
    std::exception_ptr caught;  // by a refill
    bool reported = false;      // whether a call has thrown it

    ~Shared();  // says what no call has reported
    void expect_open();
    void expect_sound();
    void fail(const std::exception_ptr& error);
    void fail_behind(const std::exception_ptr& error);
    void close();
    void close_channels();
    std::exception_ptr unreported();
    [[noreturn]] void rethrow_first();
  };
  // Refuses a second thread on a lane instead of mixing two protocols on one channel; wipes the
  // lanes of a session that has ended meanwhile.
  class Occupied;

  TwoPartySession(std::shared_ptr<Shared> shared, int first, int count);
  Lane& at(i64 index) const { return *shared_->lanes[first_ + index]; }
  void join();
  void call(const std::vector<twopc::LaneRange>& parts,
            const std::function<void(ot::Party&, twopc::LaneRange)>& protocol);

  std::shared_ptr<Shared> shared_;
  int first_ = 0;
  int count_ = 0;
};

}  // namespace privml::bindings
