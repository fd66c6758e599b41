// SPDX-License-Identifier: Apache-2.0
// Correlations made by a thread of its own, over a connection of its own, while protocols run.
//
// Schedule   the party's thread announces how many correlations are to be made; both parties do so
//            alike, in the same order, and each announcement is cut into the same extensions
//            (schedule.h). A refill therefore never waits for an extension that the peer will not
//            make. It pauses while a full stock waits to be drawn and nobody waits for more; an
//            announced demand always ends the pause at both parties.
// Depth      an announcement carries the clock of the party that makes it, an extension's
//            correlations that of its last message; whatever draws them continues from it.
// Errors     a check that fails, or bytes that the protocol does not allow, go to `on_failure` at
//            once, on the refill's thread, and every call from then on throws the error, however
//            much is in stock: it has the offset that the peer may know parts of. A connection that
//            is lost is thrown only to a caller that waits in vain, for a peer that has all
//            that it needs closes first.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "ot/party.h"

namespace privml::ot {

// Correlations of one direction in stock above which no more are made ahead (128 MiB).
inline constexpr i64 kRefillStock = i64{1} << 22;

class Refill {
 public:
  // Must not wait for the refill's end: its thread makes the call. It may close channels.
  using OnFailure = std::function<void(const std::exception_ptr&)>;

  // The pools' sources work on `channel`, which only this object uses from here on; it and the
  // pools must outlive it.
  Refill(net::Channel& channel, CotPool& sender, CotPool& receiver, OnFailure on_failure = {},
         i64 most = kRefillStock);
  ~Refill();  // ends the thread, and with it the connection
  Refill(const Refill&) = delete;

  // Called by the party's own thread, at both parties alike. Counts are (as sender, as receiver).
  using Counts = std::array<i64, 2>;
  // How many correlations are in stock or announced.
  Counts available() const;
  void announce(Counts counts, PathClock since);
  // Waits until `counts` are in stock; returns the later clock of the extensions that made them.
  PathClock wait_for(Counts counts);
  void take(OtRole role, crypto::Block* out, i64 count);

  // Bytes of the extensions so far (any thread).
  PhaseCount count() const;

 private:
  struct Job {
    Counts counts;
    PathClock since;
  };
  struct Batch {
    i64 end;  // correlations of its direction made up to here since the beginning
    PathClock clock;
  };

  void run();
  void make();
  void end_with(std::exception_ptr& kind);
  void expect_sound() const;
  bool may_continue() const;
  void extend(Counts counts);

  net::Channel& channel_;
  std::array<CotPool*, 2> pools_;
  const OnFailure on_failure_;
  const i64 most_;
  PathClock clock_;  // of the refill's thread, as what is made before it joins the stock
  std::array<WipedVector<crypto::Block>, 2> fresh_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::array<std::deque<Batch>, 2> batches_;
  Counts announced_{}, made_{}, drawn_{}, wanted_{};  // since the beginning
  PhaseCount count_;
  std::exception_ptr failure_, lost_;  // lost_: the connection, and nothing worse
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace privml::ot
