// SPDX-License-Identifier: Apache-2.0
// One party's session as Python holds it: runs protocols without the interpreter lock, or only
// meters them.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "bindings/arrays.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "ot/setup.h"

namespace privml::bindings {

// Opens on a connected channel, or without one as a meter: then protocols return zeros and their
// cost functions are booked instead. A failed protocol leaves the two parties out of step, so it
// closes the channel.
class TwoPartySession {
 public:
  TwoPartySession(std::shared_ptr<Channel> channel, int rank, const std::string& provider, int k,
                  const std::string& security, std::optional<u64> test_seed);
  TwoPartySession(int rank, const std::string& provider, int k, const std::string& security);

  int rank() const { return rank_; }
  bool metering() const { return meter_.has_value(); }

  // protocol(Party&) on a connected session, cost(CostMeter&) on a meter.
  template <class Protocol, class Cost>
  void run(Protocol&& protocol, Cost&& cost) {
    const Exclusive exclusive(busy_);
    py::gil_scoped_release without_interpreter;
    if (meter_) {
      cost(*meter_);
      return;
    }
    if (closed_) throw PeerDisconnected("this session is closed");
    const auto start = std::chrono::steady_clock::now();
    const Traffic before = channel_->traffic();
    try {
      protocol(resources_->party());
      channel_->flush();
    } catch (const InvalidArgument&) {
      const Traffic after = channel_->traffic();
      if (after.sent != before.sent || after.received != before.received) fail();
      throw;
    } catch (...) {
      fail();
      throw;
    }
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // Ends the session and wipes its keys; a protocol running in another thread ends with
  // PeerDisconnected (and its keys go with this object).
  void close();
  // {"setup" | "preprocess" | "online": {seconds, sent, received, depth}, cots_as_sender,
  // cots_as_receiver}
  py::dict counters() const;

 private:
  // Refuses a second thread instead of mixing two protocols on one channel.
  class Exclusive {
   public:
    explicit Exclusive(std::atomic<bool>& busy) : busy_(busy) {
      if (busy_.exchange(true)) throw InvalidArgument("this session is in use by another thread");
    }
    ~Exclusive() { busy_ = false; }

   private:
    std::atomic<bool>& busy_;
  };

  py::dict metered() const;
  void fail();  // the running protocol's own close()
  void wipe();

  int rank_;
  std::shared_ptr<Channel> channel_;
  Traffic opened_;  // what crossed the channel before the session
  std::unique_ptr<PartyResources> resources_;
  Ledger final_;  // of a session whose resources are gone
  std::optional<CostMeter> meter_;
  std::array<i64, 2> setup_bytes_{}, setup_depth_{};  // of the meter
  std::atomic<bool> busy_ = false;
  std::atomic<bool> closed_ = false;
  double seconds_ = 0;  // in protocols, preprocessing included
};

}  // namespace privml::bindings
