// SPDX-License-Identifier: Apache-2.0
// Python names of a session, and the pieces of it that concern correlations alone.
#include <algorithm>
#include <tuple>

#include "base/buffer.h"
#include "bindings/session.h"

namespace privml::bindings {
namespace {

ot::OtConfig ot_config(const std::string& provider, int k, const std::string& security,
                       std::optional<u64> test_seed) {
  ot::OtConfig config{provider, k, security, std::nullopt};
  if (test_seed) config.test_seed = crypto::Block{*test_seed, 0};
  return config;
}

// Correlations drawn at a time by draw_and_discard; they stay in the second-level cache.
constexpr i64 kDiscardPiece = i64{1} << 15;

void draw_and_discard(TwoPartySession& session, int sender, i64 count) {
  expect(sender == 0 || sender == 1, "sender must be 0 or 1");
  expect(count >= 0, "count must not be negative");
  const auto pieces = [](i64 part, auto&& draw) {
    for (i64 done = 0; done < part; done += kDiscardPiece)
      draw(std::min(kDiscardPiece, part - done));
  };
  session.run_divided(
      count,
      [&](ot::Party& party, twopc::LaneRange part) {
        AlignedVector<crypto::Block> drawn(std::min(kDiscardPiece, part.count));
        pieces(part.count, [&](i64 n) {
          party.rank == sender ? ot::draw_as_sender(party, drawn.data(), n)
                               : ot::draw_as_receiver(party, drawn.data(), n);
        });
      },
      [&](ot::CostMeter& meter, twopc::LaneRange part) {
        pieces(part.count, [&](i64 n) { meter.draw(sender, n); });
      });
}

using Stock = std::pair<i64, i64>;  // as sender, as receiver

void reserve_lanes(TwoPartySession& session, const std::vector<Stock>& stocks) {
  expect(!stocks.empty() && std::ssize(stocks) <= session.lanes(),
         "reserve_lanes: needs at most as many pairs as the session has lanes");
  std::vector<twopc::LaneRange> parts;
  for (i64 lane = 0; lane < std::ssize(stocks); ++lane) parts.push_back({lane, 1});
  session.run_parts(
      parts,
      [&](ot::Party& party, twopc::LaneRange part) {
        const auto [as_sender, as_receiver] = stocks[part.begin];
        ot::announce(party, as_sender, as_receiver);
      },
      [&](ot::CostMeter& meter, twopc::LaneRange part) {
        const auto [mine, theirs] = stocks[part.begin];
        session.rank() == 0 ? meter.announce(mine, theirs) : meter.announce(theirs, mine);
      });
}

using ClockTuple = std::tuple<i64, i64, i64, i64, double, double>;

ClockTuple packed(const LaneClock& clock) {
  return {clock.depth[0],      clock.depth[1],   clock.preprocess[0],
          clock.preprocess[1], clock.seconds[0], clock.seconds[1]};
}

LaneClock unpacked(const ClockTuple& clock) {
  const auto [depth0, depth1, preprocess0, preprocess1, seconds0, seconds1] = clock;
  return {{depth0, depth1}, {preprocess0, preprocess1}, {seconds0, seconds1}};
}

// On every lane of a meter, by itself: lanes that wait for each other would be another schedule.
void on_meters(TwoPartySession& session, const std::function<void(ot::CostMeter&)>& change) {
  expect(session.metering(), "this session is connected: its time is its own");
  for (int lane = 0; lane < session.lanes(); ++lane) {
    session.lane(lane).run([](ot::Party&) {}, change);
  }
}

}  // namespace

void define_session(py::module_& m) {
  using Channels = TwoPartySession::Channels;
  // Whatever may wait for a peer or a thread, or wipes memory, leaves the interpreter to others.
  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<TwoPartySession>(
      m, "TwoPartySession",
      "One party's two-party session on connected channels, one per lane; setup runs in the "
      "constructor.")
      .def(py::init([](std::shared_ptr<net::Channel> channel, int rank, const std::string& provider,
                       int k, const std::string& security, std::optional<u64> test_seed,
                       Channels further, const Channels& refills) {
             further.insert(further.begin(), std::move(channel));
             return TwoPartySession(further, rank, ot_config(provider, k, security, test_seed),
                                    refills);
           }),
           "channel"_a, "rank"_a, "provider"_a = "softspoken", "k"_a = 4,
           "security"_a = "semi_honest", "test_seed"_a = py::none(), "further"_a = Channels{},
           "refills"_a = Channels{})
      .def_static(
          "meter",
          [](int rank, const std::string& provider, int k, const std::string& security, int lanes,
             bool refill, bool counts_only) {
            return TwoPartySession(rank, ot_config(provider, k, security, std::nullopt), lanes,
                                   refill, counts_only);
          },
          "rank"_a = 0, "provider"_a = "softspoken", "k"_a = 4, "security"_a = "semi_honest",
          "lanes"_a = 1, "refill"_a = false, "counts_only"_a = false,
          "Protocols on a meter return zeros and book their exact cost. `counts_only`: the caller "
          "looks at no values.")
      .def_property_readonly("rank", &TwoPartySession::rank)
      .def_property_readonly("metering", &TwoPartySession::metering)
      .def_property_readonly("counts_only", &TwoPartySession::counts_only)
      .def_property_readonly("lanes", &TwoPartySession::lanes)
      .def_property_readonly("ot",
                             [](const TwoPartySession& session) {
                               const ot::OtConfig& config = session.config();
                               return py::make_tuple(config.provider, config.k, config.security);
                             })
      .def("lane", &TwoPartySession::lane, "index"_a,
           "One lane as a session of its own, for protocols that run beside those of other lanes.")
      .def(
          "twin", &TwoPartySession::twin,
          "A meter of one lane that plans like this session, from party 0's side, for counts only.")
      .def("set_planning", &TwoPartySession::set_planning, "chunk_factor"_a, "ciphertexts"_a,
           "Protocols work on chunks that are so many times (1..64) as long: fewer messages for "
           "long tensors, more memory. With `ciphertexts` functions may make products by lattice "
           "ciphertexts where these cost less. Both parties alike, before any protocol.")
      .def(
          "clock", [](TwoPartySession& session) { return packed(session.clock()); }, Release(),
          "The longest path so far on these lanes, for `advance`.")
      .def(
          "advance",
          [](TwoPartySession& session, const ClockTuple& at_least) {
            session.advance(unpacked(at_least));
          },
          Release(), "at_least"_a, "What comes next on these lanes depends on what had that clock.")
      .def(
          "set_link",
          [](TwoPartySession& session, double delay, double seconds_per_byte,
             double seconds_per_correlation) {
            expect(delay >= 0 && seconds_per_byte >= 0 && seconds_per_correlation >= 0,
                   "set_link: nothing takes less than no time");
            on_meters(session, [&](ot::CostMeter& meter) {
              meter.set_link(delay, seconds_per_byte, seconds_per_correlation);
            });
          },
          "delay"_a, "seconds_per_byte"_a, "seconds_per_correlation"_a = 0.0,
          "A meter's messages take time from here on; `clock` tells it after the depths, by rank.")
      .def(
          "compute",
          [](TwoPartySession& session, double seconds) {
            on_meters(session, [&](ot::CostMeter& meter) { meter.link.compute(seconds); });
          },
          "seconds"_a, "Both parties of a meter compute for so long.")
      .def("set_account", &TwoPartySession::set_account, "account"_a,
           "What the peer receives about this party if the two differ, on all of these lanes.")
      .def("set_tag", &TwoPartySession::set_tag, "tag"_a,
           "The tag of what these lanes compute from here on.")
      .def("close", &TwoPartySession::close, Release())
      .def("counters", &TwoPartySession::counters,
           "Per phase seconds, sent, received, depth; and the correlations drawn.")
      .def("draw_and_discard", &draw_and_discard, "sender"_a, "count"_a,
           "Makes and drops `count` correlations of one direction, piece by piece (for "
           "measurements).")
      .def(
          "reserve",
          [](TwoPartySession& session, i64 as_sender, i64 as_receiver) {
            reserve_lanes(session, {{as_sender, as_receiver}});
          },
          "as_sender"_a, "as_receiver"_a,
          "Makes correlations of the first lane ahead of time; the peer calls it with the numbers "
          "swapped.")
      .def("reserve_lanes", &reserve_lanes, "stocks"_a,
           "reserve(as_sender, as_receiver) on each lane, side by side. Where refills make the "
           "correlations, it returns at once and they are made while protocols run.");
}

}  // namespace privml::bindings
