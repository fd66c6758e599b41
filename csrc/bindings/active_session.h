// SPDX-License-Identifier: Apache-2.0
// One party's actively secure session as Python holds it: runs protocols without the interpreter
// lock, or only meters them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>

#include "bindings/arrays.h"
#include "bindings/lane.h"
#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/side.h"

namespace privml::bindings {

// A protocol that fails ends the session: keys are wiped, the channel is closed, and later calls
// throw the same kind of error. Wrong arguments, refused before a byte is sent, leave it alive.
class ActiveSession {
 public:
  // `ring` is k: 32 or 64. The OT provider makes the correlations, against malicious peers; "ideal"
  // (tests only) stands for an ideal supply, too, and needs a test seed.
  ActiveSession(std::shared_ptr<net::Channel> channel, int rank, int ring,
                const ot::OtConfig& config);
  // On correlations that an earlier session has made, with that one's part of the key (a word of
  // the ring); makes none.
  ActiveSession(std::shared_ptr<net::Channel> channel, int rank, int ring, Bytes key);
  // A meter.
  ActiveSession(int rank, int ring, const ot::OtConfig& config);

  int rank() const { return rank_; }
  int ring() const { return ring_; }
  bool metering() const { return meter_ != nullptr; }
  // How many arrays of words a number's share consists of: low (and high) words of share and MAC.
  int components() const { return ring_ == 64 ? 4 : 2; }

  // protocol.template operator()<R>(session), on a meter cost.template operator()<R>(meter).
  template <class Protocol, class Cost>
  void run(const Protocol& protocol, const Cost& cost) {
    with_ring([&]<class R>() {
      if (metering()) return book([&](auto& meter) { cost.template operator()<R>(meter); });
      call([&] { protocol.template operator()<R>(session<R>()); });
    });
  }
  // What needs no message; nothing on a meter.
  template <class Work>
  void run_locally(const Work& work) {
    if (metering()) return;
    with_ring([&]<class R>() { call([&] { work.template operator()<R>(session<R>()); }); });
  }

  // What it computes from here on (net/tagged.h); nothing on a meter or a closed session.
  void set_account(std::shared_ptr<const net::Account> account);
  void set_tag(u64 tag);

  // Makes what is missing of a demand now.
  void reserve(const spdz2k::Demand& demand);
  // Everything drawn so far.
  spdz2k::Demand drawn() const;

  // Ends the session as a failed check does: every later call throws SecurityAbort.
  [[noreturn]] void abort(const std::string& cause);
  void close();
  // Ends the session alone: wipes key and correlations and leaves the channel to another session.
  void retire();
  // {"setup" | "preprocess" | "online": {seconds, sent, received, depth}, cots_as_sender,
  // cots_as_receiver} as of the last finished call.
  py::dict counters() const;

 private:
  template <class R>
  struct Side {
    std::unique_ptr<spdz2k::Session<R>> session;
    std::unique_ptr<spdz2k::Supply<R>> supply;
  };
  class Occupied;
  struct Meter {
    spdz2k::CostMeter all;
    bool ideal;
    spdz2k::Demand stock{};
    ot::PhaseCount setup{}, preprocess{};  // as this party sees them
  };

  template <class Function>
  void with_ring(Function&& function) {
    if (ring_ == 64) return function.template operator()<spdz2k::Ring64>();
    function.template operator()<spdz2k::Ring32>();
  }
  template <class R>
  spdz2k::Session<R>& session() {
    return *std::get<Side<R>>(side_).session;
  }
  ActiveSession(std::shared_ptr<net::Channel> channel, int rank, int ring);
  // fill(side) makes a session and its supply; what it sends is the set-up.
  template <class R, class Fill>
  void open(const Fill& fill);
  template <class R>
  void fill(Side<R>& side, const ot::OtConfig& config);
  void call(const std::function<void()>& protocol);
  void book(const std::function<void(spdz2k::CostMeter&)>& cost);
  template <class R>
  void begin_meter();
  template <class R>
  void book_reserve(const spdz2k::Demand& demand);
  void expect_open();
  void fail(const std::exception_ptr& error);
  void wipe();

  int rank_, ring_;
  std::shared_ptr<net::Channel> channel_;
  std::unique_ptr<Lane> lane_;
  std::variant<Side<spdz2k::Ring64>, Side<spdz2k::Ring32>> side_;
  std::unique_ptr<Meter> meter_;
  std::atomic<bool> busy_ = false, closed_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::string cause_;         // why the session ended
  bool aborted_ = false;      // by SecurityAbort
  spdz2k::Demand drawn_;
};

}  // namespace privml::bindings
