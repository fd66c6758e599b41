// SPDX-License-Identifier: Apache-2.0
#include "bindings/lane.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace privml::bindings {
namespace {

constexpr int kSetup = static_cast<int>(ot::Phase::setup);
constexpr int kPreprocess = static_cast<int>(ot::Phase::preprocess);
constexpr int kOnline = static_cast<int>(ot::Phase::online);

double seconds_of(const LaneCount& count) {
  return count.phases[kPreprocess].seconds + count.phases[kOnline].seconds;
}

std::tuple<i64, i64, i64> path_of(const LaneCount& count) {
  const auto& phases = count.phases;
  const i64 preprocess = phases[kPreprocess].depth;
  return {phases[kSetup].depth + preprocess + phases[kOnline].depth, preprocess,
          phases[kSetup].depth};
}

}  // namespace

LaneClock later(const LaneClock& a, const LaneClock& b) {
  LaneClock result;
  for (int rank : {0, 1}) {
    const auto longest = std::max(std::pair{a.depth[rank], a.preprocess[rank]},
                                  std::pair{b.depth[rank], b.preprocess[rank]});
    result.depth[rank] = longest.first;
    result.preprocess[rank] = longest.second;
    result.seconds[rank] = std::max(a.seconds[rank], b.seconds[rank]);
  }
  return result;
}

LaneCount together(const LaneCount& a, const LaneCount& b) {
  const LaneCount& deepest = path_of(b) > path_of(a) ? b : a;
  const LaneCount& busiest = seconds_of(b) > seconds_of(a) ? b : a;
  LaneCount sum;
  for (int phase : {kSetup, kPreprocess, kOnline}) {
    sum.phases[phase] = {busiest.phases[phase].seconds, a.phases[phase].sent + b.phases[phase].sent,
                         a.phases[phase].received + b.phases[phase].received,
                         deepest.phases[phase].depth};
  }
  sum.phases[kSetup].seconds = std::max(a.phases[kSetup].seconds, b.phases[kSetup].seconds);
  sum.cots_as_sender = a.cots_as_sender + b.cots_as_sender;
  sum.cots_as_receiver = a.cots_as_receiver + b.cots_as_receiver;
  return sum;
}

Lane::Lane(std::shared_ptr<net::Channel> channel, std::shared_ptr<net::Channel> refill_channel,
           int rank, const ot::OtConfig& config, const ot::Refill::OnFailure& on_failure)
    : rank_(rank), channel_(std::move(channel)), refill_channel_(std::move(refill_channel)) {
  expect(channel_ != nullptr, "a lane needs a channel");
  tagged_ = net::tagged(channel_.get());
  channel_->set_depth(0);
  opened_ = channel_->traffic();
  // Whatever makes correlations later works on the channel of its set-up.
  net::Channel& makes = refill_channel_ ? *refill_channel_ : *channel_;
  makes.set_depth(0);
  resources_ = ot::make_party_resources(makes, rank, config);
  makes.flush();
  ot::Party& base = resources_->party();
  if (refill_channel_) {
    channel_->set_depth(makes.traffic().depth);
    refill_ = std::make_unique<ot::Refill>(makes, base.sender, base.receiver, on_failure);
  }
  party_.emplace(ot::Party{rank, *channel_, base.sender, base.receiver, base.prg, base.hash,
                           base.correlation_bits, base.ledger, refill_.get()});
  finish(0);
}

Lane::Lane(int rank, const ot::RcotCost& rcot, bool refill) : rank_(rank) {
  meter_.emplace(rcot);
  ot::cost_party_resources(*meter_);
  if (refill) meter_->begin_refill();
  setup_bytes_ = meter_->bytes;
  setup_depth_ = meter_->depth;
  finish(0);
}

void Lane::set_planning(i64 chunk_factor, bool ciphertexts) {
  (meter_ ? meter_->chunk_factor : party_->chunk_factor) = chunk_factor;
  (meter_ ? meter_->ciphertexts : party_->ciphertexts) = ciphertexts;
}

void Lane::set_account(std::shared_ptr<const net::Account> account) {
  if (tagged_ != nullptr) tagged_->set_account(std::move(account), true);
}

void Lane::set_tag(u64 tag) {
  if (tagged_ != nullptr) tagged_->set_tag(tag);
}

LaneClock Lane::clock() const {
  LaneClock now;
  if (meter_) {
    now.depth = meter_->depth;
    now.preprocess = meter_->preprocess_depth;
    now.seconds = meter_->link.now;
  } else if (resources_) {
    now.depth[rank_] = channel_->traffic().depth;
    now.preprocess[rank_] = resources_->party().ledger.phases[kPreprocess].depth;
  }
  return now;
}

void Lane::advance(const LaneClock& at_least) {
  const LaneClock now = later(clock(), at_least);
  if (meter_) {
    meter_->depth = now.depth;
    meter_->preprocess_depth = now.preprocess;
    meter_->link.now = now.seconds;
  } else if (resources_) {
    channel_->set_depth(now.depth[rank_]);
    resources_->party().ledger.phases[kPreprocess].depth = now.preprocess[rank_];
  }
  finish(0);
}

void Lane::finish(double seconds) {
  if (!meter_ && !resources_) return;
  if (!meter_) channel_->flush();
  seconds_ += seconds;
  const LaneCount now = meter_ ? metered() : measured();
  const std::lock_guard lock(mutex_);
  count_ = now;
}

LaneCount Lane::count() const {
  const std::lock_guard lock(mutex_);
  LaneCount now = count_;
  const ot::PhaseCount refilled = refill_ ? refill_->count() : refilled_;
  now.phases[kPreprocess].sent += refilled.sent;
  now.phases[kPreprocess].received += refilled.received;
  return now;
}

LaneCount Lane::measured() const {
  const ot::Ledger& ledger = resources_->party().ledger;
  LaneCount count{ledger.phases, ledger.cots_as_sender, ledger.cots_as_receiver};
  const ot::PhaseCount& setup = count.phases[kSetup];
  const ot::PhaseCount& preprocess = count.phases[kPreprocess];
  const net::Traffic now = channel_->traffic();
  count.phases[kOnline] = {seconds_ - preprocess.seconds, now.sent - opened_.sent,
                           now.received - opened_.received,
                           now.depth - setup.depth - preprocess.depth};
  if (!refill_) {  // set-up and correlations came over this channel too
    count.phases[kOnline].sent -= setup.sent + preprocess.sent;
    count.phases[kOnline].received -= setup.received + preprocess.received;
  }
  return count;
}

LaneCount Lane::metered() const {
  const int mine = rank_, theirs = 1 - rank_;
  LaneCount count;
  ot::PhaseCount& setup = count.phases[kSetup];
  ot::PhaseCount& preprocess = count.phases[kPreprocess];
  setup = {0, setup_bytes_[mine], setup_bytes_[theirs], setup_depth_[mine]};
  preprocess = {0, meter_->preprocess_bytes[mine], meter_->preprocess_bytes[theirs],
                meter_->preprocess_depth[mine]};
  count.phases[kOnline] = {0, meter_->bytes[mine] - setup.sent - preprocess.sent,
                           meter_->bytes[theirs] - setup.received - preprocess.received,
                           meter_->depth[mine] - setup.depth - preprocess.depth};
  count.cots_as_sender = meter_->cots[mine];
  count.cots_as_receiver = meter_->cots[theirs];
  return count;
}

void Lane::close() {
  if (channel_) channel_->close();
  if (refill_channel_) refill_channel_->close();
}

void Lane::wipe() {
  party_.reset();
  {
    const std::lock_guard lock(mutex_);
    if (refill_) refilled_ = refill_->count();
    refill_.reset();
  }
  resources_.reset();
}

}  // namespace privml::bindings
