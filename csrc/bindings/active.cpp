// SPDX-License-Identifier: Apache-2.0
// Python names of an actively secure session: values in and out, and what the key takes part in.
#include "bindings/active_values.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/shares/open.h"

namespace privml::bindings {
namespace {

using spdz2k::CostMeter;
using spdz2k::Demand;
using spdz2k::Session;

// Shapes of matrices: rows, inner, columns.
using ShapeCounts = std::map<std::tuple<i64, i64, i64>, i64>;

py::dict dict_of(const spdz2k::Demand& demand) {
  ShapeCounts matrices;
  for (const auto& [shape, count] : demand.matrices) {
    matrices[{shape.rows, shape.inner, shape.columns}] = count;
  }
  return py::dict(
      "masks"_a = py::make_tuple(demand.masks[0], demand.masks[1]), "randoms"_a = demand.randoms,
      "triples"_a = demand.triples, "squares"_a = demand.squares, "bits"_a = demand.bits,
      "bit_triples"_a = demand.bit_triples, "edabits"_a = demand.edabits, "matrices"_a = matrices);
}

spdz2k::Demand demand_of(const py::dict& numbers) {
  const auto get = [&](const char* name) { return numbers[name].cast<i64>(); };
  spdz2k::Demand demand;
  demand.masks = numbers["masks"].cast<std::array<i64, 2>>();
  demand.randoms = get("randoms");
  demand.triples = get("triples");
  demand.squares = get("squares");
  demand.bits = get("bits");
  demand.bit_triples = get("bit_triples");
  demand.edabits = numbers["edabits"].cast<std::map<int, i64>>();
  if (numbers.contains("matrices")) {
    for (const auto& [shape, count] : numbers["matrices"].cast<ShapeCounts>()) {
      const auto [rows, inner, columns] = shape;
      expect(rows > 0 && inner > 0 && columns > 0, "reserve: a matrix without entries");
      demand.matrices[{rows, inner, columns}] = count;
    }
  }
  return demand;
}

void expect_owner(int owner) { expect(owner == 0 || owner == 1, "owner must be 0 or 1"); }

// The words that the owner passes; the other party, and a meter, pass None.
std::span<const u64> owned(const ActiveSession& session, const std::optional<py::array>& value,
                           int owner, const Shape& shape) {
  expect_owner(owner);
  if (session.rank() != owner || session.metering()) return {};
  if (!value || shape_of(*value) != shape)
    throw InvalidArgument("an input's owner must pass its value, of the shape that is shared");
  return view<u64>(*value, "value");
}

py::tuple input(ActiveSession& session, const std::optional<py::array>& value, const Shape& shape,
                int owner) {
  const auto mine = owned(session, value, owner, shape);
  ShareResult out = number_result(session, shape);
  session.run(
      [&]<class R>(spdz2k::Session<R>& s) {
        spdz2k::WordShares<R> share(out.size());
        spdz2k::input<R>(s, owner, mine, share);
        out.store<typename R::Word>(share);
      },
      [&]<class R>(spdz2k::CostMeter& meter) { spdz2k::cost_input<R>(meter, owner, out.size()); });
  return out.tuple();
}

// A bit enters as a number, whose lowest bit it is.
py::tuple input_bits(ActiveSession& session, const std::optional<py::array>& value,
                     const Shape& shape, int owner) {
  const auto mine = owned(session, value, owner, shape);
  ShareResult out = bit_result(session, shape);
  session.run(
      [&]<class R>(spdz2k::Session<R>& s) {
        spdz2k::WordShares<R> share(out.size());
        spdz2k::input<R>(s, owner, mine, share);
        spdz2k::BitShares<R> bits(out.size());
        spdz2k::to_bits(share, bits);
        out.store<typename R::BitWord>(bits);
      },
      [&]<class R>(spdz2k::CostMeter& meter) { spdz2k::cost_input<R>(meter, owner, out.size()); });
  return out.tuple();
}

// Who learns nothing gets None.
py::object reveal(ActiveSession& session, const Components& a, int bits, int to) {
  const Numbers x(session, a, "a");
  const bool learns = to == spdz2k::kBothParties || to == session.rank();
  Result<u64> out(session, learns ? x.shape : Shape{0});
  session.run(
      [&]<class R>(spdz2k::Session<R>& s) {
        const auto share = x.load<R>();
        spdz2k::reveal<R>(s, share, bits, to, out.span);
      },
      [&]<class R>(spdz2k::CostMeter& meter) {
        spdz2k::reveal<R>({meter, x.size()}, {}, bits, to, {});
      });
  return learns ? py::object(out.array) : py::none();
}

py::object reveal_bits(ActiveSession& session, const Components& a, int to) {
  const Bits x(a, "a");
  const bool learns = to == spdz2k::kBothParties || to == session.rank();
  Result<u8> out(session, learns ? x.shape : Shape{0});
  session.run(
      [&]<class R>(spdz2k::Session<R>& s) {
        const auto share = x.load<R>();
        spdz2k::reveal_bits<R>(s, share, to, out.span);
      },
      [&]<class R>(spdz2k::CostMeter& meter) {
        spdz2k::reveal_bits<R>({meter, x.size()}, {}, to, {});
      });
  return learns ? py::object(out.array) : py::none();
}

// To both parties within a protocol: it is checked later, and until then nothing that depends on it
// may leave the session.
py::array open(ActiveSession& session, const Components& a, int bits) {
  const Numbers x(session, a, "a");
  Result<u64> out(session, x.shape);
  session.run(
      [&]<class R>(spdz2k::Session<R>& s) {
        const auto share = x.load<R>();
        spdz2k::open<R>(s, share, bits, out.span);
      },
      [&]<class R>(spdz2k::CostMeter& meter) { spdz2k::cost_open<R>(meter, x.size(), bits); });
  return out.array;
}

py::tuple add_public(ActiveSession& session, const Components& a, const py::array& constants) {
  const Numbers x(session, a, "a");
  const auto values = view<u64>(constants, "constants");
  expect(shape_of(constants) == x.shape, "add_public: shapes differ");
  ShareResult out = number_result(session, x.shape);
  session.run_locally([&]<class R>(spdz2k::Session<R>& s) {
    auto share = x.load<R>();
    spdz2k::add_public(s.rank, s.alpha(), share, values, share);
    out.store<typename R::Word>(share);
  });
  return out.tuple();
}

py::tuple public_numbers(ActiveSession& session, const py::array& constants) {
  const auto values = view<u64>(constants, "constants");
  ShareResult out = number_result(session, shape_of(constants));
  session.run_locally([&]<class R>(spdz2k::Session<R>& s) {
    spdz2k::WordShares<R> share(out.size());
    std::fill(share.value.begin(), share.value.end(), 0);
    std::fill(share.mac.begin(), share.mac.end(), 0);
    spdz2k::add_public(s.rank, s.alpha(), share, values, share);
    out.store<typename R::Word>(share);
  });
  return out.tuple();
}

py::tuple add_public_bits(ActiveSession& session, const Components& a, const py::array& constants) {
  const Bits x(a, "a");
  const auto values = view<u8>(constants, "constants");
  expect(shape_of(constants) == x.shape, "add_public_bits: shapes differ");
  ShareResult out = bit_result(session, x.shape);
  session.run_locally([&]<class R>(spdz2k::Session<R>& s) {
    auto share = x.load<R>();
    spdz2k::add_public(s.rank, s.bit_alpha(), share, values, share);
    out.store<typename R::BitWord>(share);
  });
  return out.tuple();
}

py::tuple random_bits(ActiveSession& session, const Shape& shape) {
  ShareResult out = number_result(session, shape);
  session.run(
      [&]<class R>(spdz2k::Session<R>& s) {
        spdz2k::WordShares<R> share(out.size());
        s.supply().bits(share);
        out.store<typename R::Word>(share);
      },
      [&]<class R>(spdz2k::CostMeter& meter) { meter.demand.bits += out.size(); });
  return out.tuple();
}

void check(ActiveSession& session) {
  session.run([]<class R>(spdz2k::Session<R>& s) { spdz2k::check<R>(s); },
              []<class R>(spdz2k::CostMeter& meter) { spdz2k::cost_check<R>(meter); });
}

ot::OtConfig config_of(const std::string& provider, int k, std::optional<u64> test_seed) {
  ot::OtConfig config{provider, k, "malicious", std::nullopt};
  if (test_seed) config.test_seed = crypto::Block{*test_seed, 0};
  return config;
}

}  // namespace

void define_active_protocols(py::module_& m);

void define_active_session(py::module_& core, py::module_& m) {
  py::class_<ActiveSession>(core, "ActiveSession",
                            "One party's actively secure session; setup runs in the constructor.")
      .def(py::init([](std::shared_ptr<net::Channel> channel, int rank, int ring,
                       const std::string& provider, int k, std::optional<u64> test_seed) {
             return std::make_unique<ActiveSession>(std::move(channel), rank, ring,
                                                    config_of(provider, k, test_seed));
           }),
           "channel"_a, "rank"_a, "ring"_a = 64, "provider"_a = "softspoken", "k"_a = 4,
           "test_seed"_a = py::none())
      .def_static(
          "meter",
          [](int rank, int ring, const std::string& provider, int k) {
            return std::make_unique<ActiveSession>(rank, ring,
                                                   config_of(provider, k, std::nullopt));
          },
          "rank"_a = 0, "ring"_a = 64, "provider"_a = "softspoken", "k"_a = 4,
          "Protocols on a meter return zeros and book their exact cost.")
      .def_property_readonly("rank", &ActiveSession::rank)
      .def_property_readonly("ring", &ActiveSession::ring)
      .def_property_readonly("metering", &ActiveSession::metering)
      .def_property_readonly("components", &ActiveSession::components)
      .def(
          "drawn", [](const ActiveSession& session) { return dict_of(session.drawn()); },
          "Numbers of correlations drawn so far, by kind.")
      .def(
          "reserve",
          [](ActiveSession& session, const py::dict& numbers) {
            session.reserve(demand_of(numbers));
          },
          "numbers"_a, "Makes what is missing of these numbers of correlations now.")
      .def("set_account", &ActiveSession::set_account, "account"_a,
           "What the peer receives about this party if the two differ.")
      .def("set_tag", &ActiveSession::set_tag, "tag"_a, "The tag of what is computed from here on.")
      .def("check", &check, "The MAC check of everything opened since the last one.")
      .def("abort", &ActiveSession::abort, "cause"_a,
           "Ends the session, wipes its keys and raises SecurityAbort, as every later call does.")
      .def("close", &ActiveSession::close, py::call_guard<py::gil_scoped_release>())
      .def("retire", &ActiveSession::retire, py::call_guard<py::gil_scoped_release>(),
           "Wipes key and correlations and leaves the channel to another session.")
      .def("counters", &ActiveSession::counters,
           "Per phase seconds, sent, received, depth; and the transfers drawn.");
  m.def("input", &input, "session"_a, "value"_a, "shape"_a, "owner"_a);
  m.def("input_bits", &input_bits, "session"_a, "value"_a, "shape"_a, "owner"_a,
        "value: int64, of which the lowest bits count");
  m.def("reveal", &reveal, "session"_a, "a"_a, "bits"_a, "to"_a = spdz2k::kBothParties,
        "Checks everything opened so far first, and the value before it is returned.");
  m.def("reveal_bits", &reveal_bits, "session"_a, "a"_a, "to"_a = spdz2k::kBothParties);
  m.def("open", &open, "session"_a, "a"_a, "bits"_a,
        "The low bits to both parties, without a check: nothing that depends on them may leave the "
        "session before the next one.");
  m.def("add_public", &add_public, "session"_a, "a"_a, "constants"_a);
  m.def("public_numbers", &public_numbers, "session"_a, "constants"_a);
  m.def("add_public_bits", &add_public_bits, "session"_a, "a"_a, "constants"_a);
  m.def("random_bits", &random_bits, "session"_a, "shape"_a, "Random bits as numbers.");
  define_active_protocols(m);
}

}  // namespace privml::bindings
