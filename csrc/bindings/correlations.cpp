// SPDX-License-Identifier: Apache-2.0
// Python names of what moves correlations between sessions and a store. Correlations and offsets
// never become Python objects: they leave the core sealed, and come back sealed. What is taken from
// a session's pools can no longer be drawn there, and a Stock gives each correlation once.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/buffer.h"
#include "bindings/bytes.h"
#include "bindings/session.h"
#include "crypto/seal.h"

namespace privml::bindings {
namespace {

constexpr i64 kBlock = sizeof(crypto::Block);

Bytes bytes_of_blocks(const WipedVector<crypto::Block>& blocks) {
  return {reinterpret_cast<const u8*>(blocks.data()), blocks.size() * kBlock};
}

ot::CotPool& pool_of(ot::Party& party, bool as_sender) {
  expect(party.refill == nullptr,
         "correlations move between a store and sessions without a refill");
  return as_sender ? party.sender : party.receiver;
}

void refuse_meter(ot::CostMeter&) { throw InvalidArgument("a meter has no correlations"); }

py::bytes seal_correlations(TwoPartySession& session, const crypto::Seal& seal, bool as_sender,
                            i64 count, const py::bytes& context) {
  expect(count >= 0, "count must not be negative");
  const Bytes place = view_of(context);
  std::vector<u8> sealed;
  session.run(
      [&](ot::Party& party) {
        ot::CotPool& pool = pool_of(party, as_sender);
        expect(count <= pool.available(), "seal_correlations: reserve that many first");
        WipedVector<crypto::Block> taken(count);
        pool.take(taken.data(), count);
        sealed = seal.seal(bytes_of_blocks(taken), place);
      },
      refuse_meter);
  return bytes_of(sealed);
}

py::bytes seal_offset(TwoPartySession& session, const crypto::Seal& seal,
                      const py::bytes& context) {
  const Bytes place = view_of(context);
  std::vector<u8> sealed;
  session.run(
      [&](ot::Party& party) {
        const WipedVector<crypto::Block> offset(1, party.sender.delta());
        sealed = seal.seal(bytes_of_blocks(offset), place);
      },
      refuse_meter);
  return bytes_of(sealed);
}

// Correlations of one direction on their way from a store into sessions.
class Stock {
 public:
  i64 count() const { return std::ssize(blocks_) - first_; }

  // False, and nothing added, when the bytes were altered or belong elsewhere.
  bool add(const crypto::Seal& seal, const py::bytes& sealed, const py::bytes& context) {
    const Bytes in = view_of(sealed), place = view_of(context);
    const i64 size = std::ssize(in) - crypto::Seal::kOverhead;
    if (size < 0 || size % kBlock != 0) return false;
    const i64 old = count(), added = size / kBlock;
    WipedVector<crypto::Block> larger(old + added);
    std::copy(blocks_.begin() + first_, blocks_.end(), larger.begin());
    const MutableBytes plain{reinterpret_cast<u8*>(larger.data() + old),
                             static_cast<std::size_t>(size)};
    py::gil_scoped_release without_interpreter;
    if (!seal.open(in, place, plain)) return false;
    blocks_ = std::move(larger);
    first_ = 0;
    return true;
  }

  void give(TwoPartySession& session, bool as_sender, i64 count) {
    expect(count >= 0 && count <= this->count(), "give: fewer correlations than asked for");
    session.run(
        [&](ot::Party& party) {
          pool_of(party, as_sender).add(blocks_.data() + first_, count);
          first_ += count;
        },
        refuse_meter);
  }

 private:
  WipedVector<crypto::Block> blocks_;
  i64 first_ = 0;
};

TwoPartySession stored_session(const TwoPartySession::Channels& channels, int rank,
                               const crypto::Seal& seal, const py::bytes& sealed_offset,
                               const py::bytes& context, const std::string& provider, int k,
                               const std::string& security, std::optional<u64> test_seed) {
  WipedVector<crypto::Block> offset(1);
  expect(seal.open(view_of(sealed_offset), view_of(context),
                   {reinterpret_cast<u8*>(offset.data()), static_cast<std::size_t>(kBlock)}),
         "the sealed offset was altered or belongs to another store");
  ot::OtConfig config{provider, k, security, std::nullopt, offset[0]};
  if (test_seed) config.test_seed = crypto::Block{*test_seed, 0};
  return {channels, rank, config};
}

}  // namespace

void define_correlations(py::module_& m) {
  py::class_<crypto::Seal>(m, "Seal", "Authenticated encryption with a key derived for a salt.")
      .def(py::init([](const py::bytes& key, const py::bytes& salt) {
             return std::make_unique<crypto::Seal>(view_of(key), view_of(salt));
           }),
           "key"_a, "salt"_a)
      .def_property_readonly_static("overhead",
                                    [](const py::object&) { return crypto::Seal::kOverhead; })
      .def(
          "seal",
          [](const crypto::Seal& seal, const py::bytes& plain, const py::bytes& context) {
            return bytes_of(seal.seal(view_of(plain), view_of(context)));
          },
          "plain"_a, "context"_a)
      .def(
          "open",
          [](const crypto::Seal& seal, const py::bytes& sealed,
             const py::bytes& context) -> std::optional<py::bytes> {
            const Bytes in = view_of(sealed);
            std::vector<u8> plain(std::max<i64>(std::ssize(in) - crypto::Seal::kOverhead, 0));
            if (!seal.open(in, view_of(context), plain)) return std::nullopt;
            return bytes_of(plain);
          },
          "sealed"_a, "context"_a, "The plain bytes; None if anything differs.");
  py::class_<Stock>(m, "Stock", "Correlations of one direction, between a store and sessions.")
      .def(py::init<>())
      .def_property_readonly("count", &Stock::count)
      .def("add", &Stock::add, "seal"_a, "sealed"_a, "context"_a,
           "False when the bytes were altered or belong elsewhere.")
      .def("give", &Stock::give, "session"_a, "as_sender"_a, "count"_a,
           "Moves the next `count` into the pool of a session's first lane, behind its stock.");
  m.def("seal_correlations", &seal_correlations, "session"_a, "seal"_a, "as_sender"_a, "count"_a,
        "context"_a, "Takes `count` out of the pool of a session's first lane, for good.");
  m.def(
      "ot_granularity",
      [](const std::string& provider, int k, const std::string& security) {
        return ot::rcot_cost(ot::OtConfig{provider, k, security, std::nullopt}).granularity;
      },
      "provider"_a, "k"_a, "security"_a, "Correlations come in multiples of this number.");
  m.def("seal_offset", &seal_offset, "session"_a, "seal"_a, "context"_a);
  m.def("stored_session", &stored_session, "channels"_a, "rank"_a, "seal"_a, "sealed_offset"_a,
        "context"_a, "provider"_a, "k"_a, "security"_a, "test_seed"_a = py::none(),
        "A session that makes no correlations: a Stock gives it those of its offset.");
}

}  // namespace privml::bindings
