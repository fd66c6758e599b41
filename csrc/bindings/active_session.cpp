// SPDX-License-Identifier: Apache-2.0
#include "bindings/active_session.h"

#include <chrono>

#include "base/error.h"
#include "spdz2k/coin_toss.h"
#include "spdz2k/ideal.h"

namespace privml::bindings {
namespace {

using Clock = std::chrono::steady_clock;
using spdz2k::Demand;
using spdz2k::Ring32;
using spdz2k::Ring64;

constexpr int kSetup = static_cast<int>(Phase::setup);

py::dict dict_of(const PhaseCount& count) {
  return py::dict("seconds"_a = count.seconds, "sent"_a = count.sent, "received"_a = count.received,
                  "depth"_a = count.depth);
}

void expect_malicious(const OtConfig& config) {
  expect(config.provider == "ideal" || config.security == "malicious",
         "an actively secure session needs transfers with malicious security");
}

}  // namespace

// Refuses a second thread instead of mixing two protocols on one channel.
class ActiveSession::Occupied {
 public:
  explicit Occupied(ActiveSession& session) : session_(session) {
    if (session.busy_.exchange(true))
      throw InvalidArgument("this session is in use by another thread");
  }
  Occupied(const Occupied&) = delete;
  ~Occupied() {
    if (session_.closed_) session_.wipe();
    session_.busy_ = false;
  }

 private:
  ActiveSession& session_;
};

ActiveSession::ActiveSession(std::shared_ptr<Channel> channel, int rank, int ring,
                             const OtConfig& config)
    : rank_(rank), ring_(ring), channel_(std::move(channel)) {
  expect(channel_ != nullptr, "a session needs a channel");
  expect(rank == 0 || rank == 1, "rank must be 0 or 1");
  expect(ring == 32 || ring == 64, "the ring has 32 or 64 bits");
  expect_malicious(config);
  py::gil_scoped_release without_interpreter;
  lane_ = std::make_unique<Lane>(channel_, nullptr, rank, config);
  with_ring([&]<class R>() { open<R>(config); });
}

ActiveSession::ActiveSession(int rank, int ring, const OtConfig& config)
    : rank_(rank), ring_(ring), meter_(std::make_unique<spdz2k::CostMeter>()) {
  expect(rank == 0 || rank == 1, "rank must be 0 or 1");
  expect(ring == 32 || ring == 64, "the ring has 32 or 64 bits");
  expect_malicious(config);
  lane_ = std::make_unique<Lane>(rank, rcot_cost(config), false);
}

template <class R>
void ActiveSession::open(const OtConfig& config) {
  Party& party = lane_->party();
  Side<R> side;
  const Traffic before = channel_->traffic();
  expect(config.provider == "ideal", "this release has correlations for tests only");
  side.session = std::make_unique<spdz2k::Session<R>>(
      rank_, *channel_, party.prg, spdz2k::ideal_key<R>(*config.test_seed, rank_));
  side.supply = spdz2k::make_ideal_supply<R>(*config.test_seed, rank_);
  side.session->set_supply(*side.supply);
  channel_->flush();
  const Traffic after = channel_->traffic();
  PhaseCount& setup = party.ledger.phases[kSetup];
  setup.sent += after.sent - before.sent;
  setup.received += after.received - before.received;
  setup.depth += after.depth - before.depth;
  side_ = std::move(side);
  lane_->finish(0);
}

void ActiveSession::call(const std::function<void()>& protocol) {
  const Occupied occupied(*this);
  py::gil_scoped_release without_interpreter;
  expect_open();
  const Clock::time_point start = Clock::now();
  const Traffic before = channel_->traffic();
  try {
    protocol();
    channel_->flush();
  } catch (const InvalidArgument&) {
    const Traffic after = channel_->traffic();
    if (after.sent != before.sent || after.received != before.received)
      fail(std::current_exception());
    throw;
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  lane_->finish(seconds);
  const std::lock_guard lock(mutex_);
  with_ring([&]<class R>() { drawn_ = std::get<Side<R>>(side_).supply->drawn(); });
}

void ActiveSession::book(const std::function<void()>& cost) {
  const Occupied occupied(*this);
  cost();
  const std::lock_guard lock(mutex_);
  drawn_ = meter_->demand;
}

void ActiveSession::reserve(const Demand& demand) {
  run([&]<class R>(spdz2k::Session<R>& session) { session.supply().reserve(demand); },
      [&]<class R>(spdz2k::CostMeter&) {});
}

Demand ActiveSession::drawn() const {
  const std::lock_guard lock(mutex_);
  return drawn_;
}

void ActiveSession::expect_open() {
  if (!closed_) return;
  const std::lock_guard lock(mutex_);
  if (aborted_) throw SecurityAbort("this session ended: " + cause_);
  throw PeerDisconnected(cause_.empty() ? "this session is closed"
                                        : "this session ended: " + cause_);
}

void ActiveSession::fail(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_.empty() && !closed_) {
      try {
        std::rethrow_exception(error);
      } catch (const SecurityAbort& abort) {
        cause_ = abort.what();
        aborted_ = true;
      } catch (const std::exception& known) {
        cause_ = known.what();
      } catch (...) {
        cause_ = "an unknown error";
      }
    }
  }
  closed_ = true;
  lane_->close();
}

void ActiveSession::close() {
  closed_ = true;
  lane_->close();
  if (busy_.exchange(true)) return;  // who uses it wipes it
  wipe();
  busy_ = false;
}

void ActiveSession::wipe() {
  if (metering()) return;
  with_ring([&]<class R>() { side_ = Side<R>{}; });
  lane_->wipe();
}

py::dict ActiveSession::counters() const {
  LaneCount count = lane_->count();
  if (metering()) {
    const std::lock_guard lock(mutex_);
    PhaseCount& setup = count.phases[kSetup];
    setup.sent += i64{sizeof(spdz2k::Commitment)};
    setup.received += i64{sizeof(spdz2k::Commitment)};
    ++setup.depth;
    const auto& [bytes, depth] = std::tie(meter_->bytes, meter_->depth);
    count.phases[static_cast<int>(Phase::online)] = {0, bytes[rank_], bytes[1 - rank_],
                                                     depth[rank_]};
  }
  return py::dict("setup"_a = dict_of(count.phases[0]), "preprocess"_a = dict_of(count.phases[1]),
                  "online"_a = dict_of(count.phases[2]), "cots_as_sender"_a = count.cots_as_sender,
                  "cots_as_receiver"_a = count.cots_as_receiver);
}

}  // namespace privml::bindings
