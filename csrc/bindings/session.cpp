// SPDX-License-Identifier: Apache-2.0
#include "bindings/session.h"

#include <algorithm>

#include "base/buffer.h"

namespace privml::bindings {
namespace {

OtConfig ot_config(const std::string& provider, int k, const std::string& security,
                   std::optional<u64> test_seed) {
  OtConfig config{provider, k, security, std::nullopt};
  if (test_seed) config.test_seed = Block{*test_seed, 0};
  return config;
}

py::dict count_of(const PhaseCount& count) {
  return py::dict("seconds"_a = count.seconds, "sent"_a = count.sent, "received"_a = count.received,
                  "depth"_a = count.depth);
}

py::dict dictionary(const std::array<PhaseCount, 3>& phases, i64 sender, i64 receiver) {
  return py::dict("setup"_a = count_of(phases[0]), "preprocess"_a = count_of(phases[1]),
                  "online"_a = count_of(phases[2]), "cots_as_sender"_a = sender,
                  "cots_as_receiver"_a = receiver);
}

// Correlations drawn at a time by draw_and_discard.
constexpr i64 kDiscardPiece = i64{1} << 18;

void draw_and_discard(TwoPartySession& session, int sender, i64 count) {
  expect(sender == 0 || sender == 1, "sender must be 0 or 1");
  expect(count >= 0, "count must not be negative");
  const auto pieces = [count](auto&& draw) {
    for (i64 done = 0; done < count; done += kDiscardPiece)
      draw(std::min(kDiscardPiece, count - done));
  };
  session.run(
      [&](Party& party) {
        AlignedVector<Block> drawn(std::min(kDiscardPiece, count));
        pieces([&](i64 n) {
          party.rank == sender ? draw_as_sender(party, drawn.data(), n)
                               : draw_as_receiver(party, drawn.data(), n);
        });
      },
      [&](CostMeter& meter) { pieces([&](i64 n) { meter.draw(sender, n); }); });
}

}  // namespace

TwoPartySession::TwoPartySession(std::shared_ptr<Channel> channel, int rank,
                                 const std::string& provider, int k, const std::string& security,
                                 std::optional<u64> test_seed)
    : rank_(rank), channel_(std::move(channel)) {
  expect(channel_ != nullptr, "a session needs a channel");
  py::gil_scoped_release without_interpreter;
  try {
    opened_ = channel_->traffic();
    resources_ = make_party_resources(*channel_, rank, ot_config(provider, k, security, test_seed));
    channel_->flush();
  } catch (...) {
    channel_->close();
    throw;
  }
}

TwoPartySession::TwoPartySession(int rank, const std::string& provider, int k,
                                 const std::string& security)
    : rank_(rank) {
  expect(rank == 0 || rank == 1, "rank must be 0 or 1");
  meter_.emplace(rcot_cost(ot_config(provider, k, security, std::nullopt)));
  cost_party_resources(*meter_);
  setup_bytes_ = meter_->bytes;
  setup_depth_ = meter_->depth;
}

void TwoPartySession::close() {
  closed_ = true;
  if (channel_) channel_->close();
  if (busy_.exchange(true)) return;
  wipe();
  busy_ = false;
}

void TwoPartySession::fail() {
  closed_ = true;
  channel_->close();
  wipe();
}

void TwoPartySession::wipe() {
  if (!resources_) return;
  final_ = resources_->party().ledger;
  resources_.reset();
}

py::dict TwoPartySession::counters() const {
  if (meter_) return metered();
  const Ledger& ledger = resources_ ? resources_->party().ledger : final_;
  std::array<PhaseCount, 3> phases = ledger.phases;
  const PhaseCount& setup = phases[static_cast<int>(Phase::setup)];
  const PhaseCount& preprocess = phases[static_cast<int>(Phase::preprocess)];
  const Traffic now = channel_->traffic();
  phases[static_cast<int>(Phase::online)] = {
      seconds_ - preprocess.seconds, now.sent - opened_.sent - setup.sent - preprocess.sent,
      now.received - opened_.received - setup.received - preprocess.received,
      now.depth - opened_.depth - setup.depth - preprocess.depth};
  return dictionary(phases, ledger.cots_as_sender, ledger.cots_as_receiver);
}

py::dict TwoPartySession::metered() const {
  const int mine = rank_, theirs = 1 - rank_;
  std::array<PhaseCount, 3> phases;
  phases[0] = {0, setup_bytes_[mine], setup_bytes_[theirs], setup_depth_[mine]};
  phases[1] = {0, meter_->preprocess_bytes[mine], meter_->preprocess_bytes[theirs],
               meter_->preprocess_depth[mine]};
  phases[2] = {0, meter_->bytes[mine] - phases[0].sent - phases[1].sent,
               meter_->bytes[theirs] - phases[0].received - phases[1].received,
               meter_->depth[mine] - phases[0].depth - phases[1].depth};
  return dictionary(phases, meter_->cots[mine], meter_->cots[theirs]);
}

void define_session(py::module_& m) {
  py::class_<TwoPartySession>(
      m, "TwoPartySession",
      "One party's two-party session on a connected channel; setup runs in the constructor.")
      .def(py::init<std::shared_ptr<Channel>, int, const std::string&, int, const std::string&,
                    std::optional<u64>>(),
           "channel"_a, "rank"_a, "provider"_a = "softspoken", "k"_a = 4,
           "security"_a = "semi_honest", "test_seed"_a = py::none())
      .def_static(
          "meter",
          [](int rank, const std::string& provider, int k, const std::string& security) {
            return std::make_unique<TwoPartySession>(rank, provider, k, security);
          },
          "rank"_a = 0, "provider"_a = "softspoken", "k"_a = 4, "security"_a = "semi_honest",
          "Protocols on a meter return zeros and book their exact cost.")
      .def_property_readonly("rank", &TwoPartySession::rank)
      .def_property_readonly("metering", &TwoPartySession::metering)
      .def("close", &TwoPartySession::close)
      .def("counters", &TwoPartySession::counters,
           "Per phase seconds, sent, received, depth; and the correlations drawn.")
      .def("draw_and_discard", &draw_and_discard, "sender"_a, "count"_a,
           "Makes and drops `count` correlations of one direction, piece by piece (for "
           "measurements).")
      .def(
          "reserve",
          [](TwoPartySession& session, i64 as_sender, i64 as_receiver) {
            session.run([&](Party& party) { reserve(party, as_sender, as_receiver); },
                        [&](CostMeter& meter) {
                          const bool first = session.rank() == 0;
                          meter.reserve(first ? as_sender : as_receiver,
                                        first ? as_receiver : as_sender);
                        });
          },
          "as_sender"_a, "as_receiver"_a,
          "Makes correlations ahead of time; the peer calls it with the numbers swapped.");
}

}  // namespace privml::bindings
