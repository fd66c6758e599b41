// SPDX-License-Identifier: Apache-2.0
#include "bindings/active_session.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "spdz2k/preprocessing/ideal.h"
#include "spdz2k/preprocessing/preprocessing.h"
#include "spdz2k/shares/coin_toss.h"

namespace privml::bindings {
namespace {

using Clock = std::chrono::steady_clock;
using spdz2k::Demand;
using spdz2k::Ring32;
using spdz2k::Ring64;

constexpr int kSetup = static_cast<int>(ot::Phase::setup);

py::dict dict_of(const ot::PhaseCount& count) {
  return py::dict("seconds"_a = count.seconds, "sent"_a = count.sent, "received"_a = count.received,
                  "depth"_a = count.depth);
}

void expect_malicious(const ot::OtConfig& config) {
  expect(config.provider == "ideal" || config.security == "malicious",
         "an actively secure session needs transfers with malicious security");
}

// What this party has sent, received and waited for so far.
ot::PhaseCount seen_by(int rank, const ot::CostMeter& meter) {
  return {0, meter.bytes[rank], meter.bytes[1 - rank], meter.depth[rank]};
}

ot::PhaseCount operator-(const ot::PhaseCount& a, const ot::PhaseCount& b) {
  return {a.seconds - b.seconds, a.sent - b.sent, a.received - b.received, a.depth - b.depth};
}

ot::PhaseCount operator+(const ot::PhaseCount& a, const ot::PhaseCount& b) {
  return {a.seconds + b.seconds, a.sent + b.sent, a.received + b.received, a.depth + b.depth};
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

ActiveSession::ActiveSession(std::shared_ptr<net::Channel> channel, int rank, int ring)
    : rank_(rank), ring_(ring), channel_(std::move(channel)) {
  expect(channel_ != nullptr, "a session needs a channel");
  expect(rank == 0 || rank == 1, "rank must be 0 or 1");
  expect(ring == 32 || ring == 64, "the ring has 32 or 64 bits");
}

ActiveSession::ActiveSession(std::shared_ptr<net::Channel> channel, int rank, int ring,
                             const ot::OtConfig& config)
    : ActiveSession(std::move(channel), rank, ring) {
  expect_malicious(config);
  py::gil_scoped_release without_interpreter;
  lane_ = std::make_unique<Lane>(channel_, nullptr, rank, config);
  with_ring([&]<class R>() {
    open<R>([&](Side<R>& side) { fill<R>(side, config); });
    if (config.provider == "ideal") return;
    // Which books what it sends as preprocessing.
    Side<R>& side = std::get<Side<R>>(side_);
    side.supply = std::make_unique<spdz2k::PreprocessingSupply<R>>(*side.session, &lane_->party(),
                                                                   config.provider == "silent");
    lane_->finish(lane_->party().ledger.phases[static_cast<int>(ot::Phase::preprocess)].seconds);
  });
}

ActiveSession::ActiveSession(std::shared_ptr<net::Channel> channel, int rank, int ring, Bytes key)
    : ActiveSession(std::move(channel), rank, ring) {
  py::gil_scoped_release without_interpreter;
  lane_ = std::make_unique<Lane>(channel_, nullptr, rank, ot::OtConfig{"none", 0, "malicious", {}});
  with_ring([&]<class R>() {
    WipedVector<typename R::Word> alpha(1);
    expect(std::ssize(key) == i64{sizeof alpha[0]}, "the key is a word of the ring");
    std::memcpy(alpha.data(), key.data(), key.size());
    open<R>([&](Side<R>& side) {
      side.session =
          std::make_unique<spdz2k::Session<R>>(rank, *channel_, lane_->party().prg, alpha[0]);
      side.supply = std::make_unique<spdz2k::PreprocessingSupply<R>>(*side.session, nullptr);
    });
  });
}

ActiveSession::ActiveSession(int rank, int ring, const ot::OtConfig& config)
    : rank_(rank), ring_(ring) {
  expect(rank == 0 || rank == 1, "rank must be 0 or 1");
  expect(ring == 32 || ring == 64, "the ring has 32 or 64 bits");
  expect_malicious(config);
  meter_ = std::make_unique<Meter>(
      Meter{spdz2k::CostMeter(ot::rcot_cost(config)), config.provider == "ideal"});
  with_ring([&]<class R>() { begin_meter<R>(); });
}

template <class R>
void ActiveSession::begin_meter() {
  ot::CostMeter& wire = meter_->all;
  ot::cost_party_resources(wire);
  wire.exchange(sizeof(spdz2k::Commitment), sizeof(spdz2k::Commitment));
  meter_->setup = seen_by(rank_, wire);
  if (meter_->ideal) return;
  spdz2k::cost_preprocessing_setup<R>(meter_->all);
  meter_->preprocess = seen_by(rank_, wire) - meter_->setup;
}

template <class R>
void ActiveSession::book_reserve(const spdz2k::Demand& demand) {
  if (meter_->ideal) return;
  spdz2k::CostMeter& all = meter_->all;
  const ot::PhaseCount before = seen_by(rank_, all);
  const spdz2k::Demand drawn = all.demand;
  spdz2k::cost_reserve<R>(all, meter_->stock, demand);
  all.demand = drawn;
  meter_->preprocess = meter_->preprocess + (seen_by(rank_, all) - before);
}

template <class R>
void ActiveSession::fill(Side<R>& side, const ot::OtConfig& config) {
  ot::Party& party = lane_->party();
  if (config.provider != "ideal") {
    side.session = spdz2k::make_session<R>(party);
    return;
  }
  expect(config.test_seed.has_value(), "ideal correlations need a seed");
  side.session = std::make_unique<spdz2k::Session<R>>(
      rank_, *channel_, party.prg, spdz2k::ideal_key<R>(*config.test_seed, rank_));
  side.supply = spdz2k::make_ideal_supply<R>(*config.test_seed, rank_);
  side.session->set_supply(*side.supply);
}

template <class R, class Fill>
void ActiveSession::open(const Fill& fill) {
  Side<R> side;
  const net::Traffic before = channel_->traffic();
  fill(side);
  channel_->flush();
  const net::Traffic after = channel_->traffic();
  ot::PhaseCount& setup = lane_->party().ledger.phases[kSetup];
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
  const net::Traffic before = channel_->traffic();
  try {
    protocol();
    channel_->flush();
  } catch (const InvalidArgument&) {
    const net::Traffic after = channel_->traffic();
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

void ActiveSession::book(const std::function<void(spdz2k::CostMeter&)>& cost) {
  const Occupied occupied(*this);
  const spdz2k::Demand before = meter_->all.demand;
  cost(meter_->all);
  const spdz2k::Demand& drawn = meter_->all.demand;
  for (const spdz2k::Item item : spdz2k::items_of(drawn)) {  // what is drawn leaves the stock
    const i64 taken = spdz2k::count_of(drawn, item) - spdz2k::count_of(before, item);
    if (taken == 0) continue;
    i64& left = spdz2k::count_of(meter_->stock, item);
    left = std::max<i64>(left - taken, 0);
  }
  const std::lock_guard lock(mutex_);
  drawn_ = drawn;
}

void ActiveSession::set_account(std::shared_ptr<const net::Account> account) {
  const Occupied occupied(*this);
  if (!metering()) lane_->set_account(std::move(account));
}

void ActiveSession::set_tag(u64 tag) {
  const Occupied occupied(*this);
  if (!metering() && !closed_) lane_->set_tag(tag);
}

void ActiveSession::reserve(const spdz2k::Demand& demand) {
  with_ring([&]<class R>() {
    if (metering()) return book_reserve<R>(demand);
    call([&] { session<R>().supply().reserve(demand); });
  });
}

spdz2k::Demand ActiveSession::drawn() const {
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
  if (!metering()) lane_->close();
}

void ActiveSession::abort(const std::string& cause) {
  fail(std::make_exception_ptr(SecurityAbort(cause)));
  close();
  throw SecurityAbort(cause);
}

void ActiveSession::close() {
  closed_ = true;
  if (!metering()) lane_->close();
  retire();
}

void ActiveSession::retire() {
  closed_ = true;
  if (metering()) return;
  if (busy_.exchange(true)) return;  // its user wipes it
  wipe();
  busy_ = false;
}

void ActiveSession::wipe() {
  if (metering()) return;
  with_ring([&]<class R>() { side_ = Side<R>{}; });
  lane_->wipe();
}

py::dict ActiveSession::counters() const {
  LaneCount count;
  if (metering()) {
    const ot::CostMeter& wire = meter_->all;
    const ot::PhaseCount online = seen_by(rank_, wire) - meter_->setup - meter_->preprocess;
    count.phases = {meter_->setup, meter_->preprocess, online};
    count.cots_as_sender = wire.cots[rank_];
    count.cots_as_receiver = wire.cots[1 - rank_];
  } else {
    count = lane_->count();
  }
  return py::dict("setup"_a = dict_of(count.phases[0]), "preprocess"_a = dict_of(count.phases[1]),
                  "online"_a = dict_of(count.phases[2]), "cots_as_sender"_a = count.cots_as_sender,
                  "cots_as_receiver"_a = count.cots_as_receiver);
}

}  // namespace privml::bindings
