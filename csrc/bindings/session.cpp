// SPDX-License-Identifier: Apache-2.0
#include "bindings/session.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace privml::bindings {
namespace {

using Clock = std::chrono::steady_clock;

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown error";
  }
}

bool says_why(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const net::ProgramsDiffer&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Every lane's randomness differs, also in tests.
ot::OtConfig of_lane(ot::OtConfig config, i64 lane) {
  if (config.test_seed) config.test_seed->hi ^= static_cast<u64>(lane) << 32;
  return config;
}

ot::OtConfig without_secrets(ot::OtConfig config) {
  config.test_seed.reset();
  config.stored_offset.reset();
  return config;
}

py::dict count_of(const ot::PhaseCount& count) {
  return py::dict("seconds"_a = count.seconds, "sent"_a = count.sent, "received"_a = count.received,
                  "depth"_a = count.depth);
}

}  // namespace

class TwoPartySession::Occupied {
 public:
  Occupied(TwoPartySession& session, i64 count) : session_(session) {
    for (; held_ < count; ++held_) {
      if (session.at(held_).busy.exchange(true)) {
        release();
        throw InvalidArgument("this session is in use by another thread");
      }
    }
  }
  Occupied(const Occupied&) = delete;
  ~Occupied() { release(); }

 private:
  void release() {
    while (held_ > 0) {
      Lane& lane = session_.at(--held_);
      if (session_.shared_->closed) lane.wipe();
      lane.busy = false;
    }
  }

  TwoPartySession& session_;
  i64 held_ = 0;
};

TwoPartySession::TwoPartySession(const Channels& channels, int rank, const ot::OtConfig& config,
                                 const Channels& refills)
    : shared_(std::make_shared<Shared>()), count_(static_cast<int>(channels.size())) {
  expect(!channels.empty(), "a session needs a channel");
  expect(refills.empty() || refills.size() == channels.size(),
         "a session has no refill or one for each lane");
  expect(refills.empty() || !config.stored_offset, "stored correlations need no refill");
  for (const auto& channel : channels) expect(channel != nullptr, "a lane needs a channel");
  for (const auto& channel : refills) expect(channel != nullptr, "a refill needs a channel");
  py::gil_scoped_release without_interpreter;
  shared_->rank = rank;
  shared_->config = without_secrets(config);
  shared_->lanes.resize(channels.size());
  twopc::run_on_lanes(
      count_,
      [&](i64 lane) {
        shared_->lanes[lane] = std::make_unique<Lane>(
            channels[lane], refills.empty() ? nullptr : refills[lane], rank, of_lane(config, lane),
            [shared = shared_.get()](const auto& error) { shared->fail_behind(error); });
      },
      [&](i64) {
        for (const auto& channel : channels) channel->close();
        for (const auto& channel : refills) channel->close();
      });
  join();
}

TwoPartySession::TwoPartySession(int rank, const ot::OtConfig& config, int lanes, bool refill,
                                 bool counts_only)
    : shared_(std::make_shared<Shared>()), count_(lanes) {
  expect(rank == 0 || rank == 1, "rank must be 0 or 1");
  expect(lanes >= 1, "a session has at least one lane");
  shared_->rank = rank;
  shared_->metering = true;
  shared_->counts_only = counts_only;
  shared_->config = without_secrets(config);
  const ot::RcotCost rcot = ot::rcot_cost(config);
  for (int lane = 0; lane < lanes; ++lane) {
    shared_->lanes.push_back(std::make_unique<Lane>(rank, rcot, refill));
  }
}

TwoPartySession::TwoPartySession(std::shared_ptr<Shared> shared, int first, int count)
    : shared_(std::move(shared)), first_(first), count_(count) {}

TwoPartySession TwoPartySession::twin() const {
  TwoPartySession meter(0, shared_->config, 1, false, true);
  meter.set_planning(shared_->chunk_factor, shared_->ciphertexts);
  return meter;
}

void TwoPartySession::set_planning(i64 chunk_factor, bool ciphertexts) {
  expect(1 <= chunk_factor && chunk_factor <= 64, "a chunk factor lies in 1..64");
  if (!metering()) shared_->expect_open();
  shared_->chunk_factor = chunk_factor;
  shared_->ciphertexts = ciphertexts;
  for (const auto& lane : shared_->lanes) lane->set_planning(chunk_factor, ciphertexts);
}

TwoPartySession TwoPartySession::lane(int index) const {
  expect(index >= 0 && index < count_, "lane: no lane of that number");
  return {shared_, first_ + index, 1};
}

void TwoPartySession::run(const std::function<void(ot::Party&)>& protocol,
                          const std::function<void(ot::CostMeter&)>& cost) {
  run_parts(
      {twopc::LaneRange{}}, [&](ot::Party& party, twopc::LaneRange) { protocol(party); },
      [&](ot::CostMeter& meter, twopc::LaneRange) { cost(meter); });
}

void TwoPartySession::run_divided(
    i64 n, const std::function<void(ot::Party&, twopc::LaneRange)>& protocol,
    const std::function<void(ot::CostMeter&, twopc::LaneRange)>& cost) {
  run_parts(twopc::divide_over_lanes(n, count_), protocol, cost);
}

void TwoPartySession::run_parts(const std::vector<twopc::LaneRange>& parts,
                                const std::function<void(ot::Party&, twopc::LaneRange)>& protocol,
                                const std::function<void(ot::CostMeter&, twopc::LaneRange)>& cost) {
  const bool several = parts.size() > 1;
  const Occupied occupied(*this, several ? count_ : 1);
  py::gil_scoped_release without_interpreter;
  if (!metering()) shared_->expect_open();
  if (several) join();
  if (metering()) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      cost(at(i).meter(), parts[i]);
      at(i).finish(0);
    }
  } else {
    call(parts, protocol);
  }
  if (several) join();
}

void TwoPartySession::call(const std::vector<twopc::LaneRange>& parts,
                           const std::function<void(ot::Party&, twopc::LaneRange)>& protocol) {
  const i64 count = std::ssize(parts);
  std::vector<u8> refused(parts.size(), 0);
  const auto body = [&](i64 i) {
    Lane& lane = at(i);
    const net::Traffic before = lane.channel().traffic();
    try {
      protocol(lane.party(), parts[i]);
      lane.channel().flush();
    } catch (const InvalidArgument&) {
      const net::Traffic after = lane.channel().traffic();
      refused[i] = after.sent == before.sent && after.received == before.received;
      throw;
    }
  };
  const auto on_failure = [&](i64 i) {
    if (i < 0 || !refused[i]) shared_->fail(std::current_exception());
  };
  const Clock::time_point start = Clock::now();
  try {
    twopc::run_on_lanes(count, body, on_failure);
  } catch (...) {
    // Wrong arguments that all lanes have refused before a byte was sent leave the session alive.
    if (std::find(refused.begin(), refused.end(), 0) == refused.end()) throw;
    shared_->fail(std::current_exception());
    shared_->rethrow_first();
  }
  shared_->expect_sound();  // what was computed meanwhile is not handed out
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (i64 i = 0; i < count; ++i) at(i).finish(seconds);
}

void TwoPartySession::set_account(const std::shared_ptr<const net::Account>& account) {
  const Occupied occupied(*this, count_);
  for (int i = 0; i < count_; ++i) at(i).set_account(account);
}

void TwoPartySession::set_tag(u64 tag) {
  const Occupied occupied(*this, count_);
  if (shared_->closed) return;
  for (int i = 0; i < count_; ++i) at(i).set_tag(tag);
}

LaneClock TwoPartySession::clock() {
  const Occupied occupied(*this, count_);
  LaneClock longest;
  for (int i = 0; i < count_; ++i) longest = later(longest, at(i).clock());
  return longest;
}

void TwoPartySession::advance(const LaneClock& at_least) {
  const Occupied occupied(*this, count_);
  for (int i = 0; i < count_; ++i) at(i).advance(at_least);
}

// All lanes' clocks go on from the latest.
void TwoPartySession::join() {
  if (count_ == 1) return;
  LaneClock longest;
  for (int i = 0; i < count_; ++i) longest = later(longest, at(i).clock());
  for (int i = 0; i < count_; ++i) at(i).advance(longest);
}

void TwoPartySession::close() {
  shared_->close();
  if (const std::exception_ptr error = shared_->unreported()) std::rethrow_exception(error);
}

TwoPartySession::Shared::~Shared() {
  std::erase(lanes, nullptr);  // of a set-up that failed
  close();                     // refills may fail until then
  const std::exception_ptr error = unreported();
  if (!error || Py_IsInitialized() == 0) return;
  const py::gil_scoped_acquire interpreter;
  PyErr_SetString(PyExc_RuntimeError, ("a session was not closed: " + text_of(error)).c_str());
  PyErr_WriteUnraisable(nullptr);
}

void TwoPartySession::Shared::expect_open() {
  if (!closed) return;
  expect_sound();
  const std::lock_guard lock(mutex);
  throw PeerDisconnected(first ? "this session ended: " + text_of(first)
                               : std::string("this session is closed"));
}

void TwoPartySession::Shared::expect_sound() {
  {
    const std::lock_guard lock(mutex);
    if (!caught) return;
  }
  close();  // which wipes what the refill's thread has left
  rethrow_first();
}

void TwoPartySession::Shared::fail(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex);
    // That a connection was closed is a consequence if the peer has said why.
    if ((!first && !closed) || says_why(error)) first = error;
  }
  close();
}

// On a refill's thread, which cannot wipe lanes: that waits for it.
void TwoPartySession::Shared::fail_behind(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex);
    if (!caught) caught = error;
    closed = true;
  }
  close_channels();
}

void TwoPartySession::Shared::close() {
  closed = true;
  close_channels();
  for (const auto& lane : lanes) {
    if (lane->busy.exchange(true)) continue;
    lane->wipe();
    lane->busy = false;
  }
}

void TwoPartySession::Shared::close_channels() {
  for (const auto& lane : lanes) lane->close();
}

// What a refill has caught, once.
std::exception_ptr TwoPartySession::Shared::unreported() {
  const std::lock_guard lock(mutex);
  if (!caught || reported) return nullptr;
  reported = true;
  return caught;
}

void TwoPartySession::Shared::rethrow_first() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex);
    error = caught ? caught : first;
    reported = reported || caught;
  }
  if (error) std::rethrow_exception(error);
  throw PeerDisconnected("this session is closed");
}

py::dict TwoPartySession::counters() const {
  LaneCount sum = at(0).count();
  for (int i = 1; i < count_; ++i) sum = together(sum, at(i).count());
  return py::dict("setup"_a = count_of(sum.phases[0]), "preprocess"_a = count_of(sum.phases[1]),
                  "online"_a = count_of(sum.phases[2]), "cots_as_sender"_a = sum.cots_as_sender,
                  "cots_as_receiver"_a = sum.cots_as_receiver);
}

}  // namespace privml::bindings
