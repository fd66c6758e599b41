// SPDX-License-Identifier: Apache-2.0
// Python names of what moves an actively secure session's correlations, and its part of the key,
// into a store and back. Neither becomes a Python object: they leave the core sealed and come back
// sealed. What is taken out of a session can no longer be drawn there.
#include <array>
#include <charconv>
#include <map>

#include "bindings/active_session.h"
#include "bindings/bytes.h"
#include "crypto/seal.h"
#include "spdz2k/preprocessing/preprocessing.h"

namespace privml::bindings {
namespace {

using spdz2k::Item;
using spdz2k::Kind;
using spdz2k::PreprocessingSupply;
using spdz2k::Session;

const std::string kKey = "key";

// Numbers separated by x; false for anything else.
bool read_numbers(std::string_view text, std::span<i64> out) {
  const char *at = text.data(), *end = at + text.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i > 0 && (at == end || *at++ != 'x')) return false;
    const auto [last, error] = std::from_chars(at, end, out[i]);
    if (error != std::errc()) return false;
    at = last;
  }
  return at == end;
}

// "triples", or if a kind has parameters "edabits 17", "masks 1", "matrices 2x3x4" (rows, inner,
// columns).
spdz2k::Item item_of(const std::string& name) {
  static const std::map<std::string, spdz2k::Kind> kKinds{
      {"edabits", spdz2k::Kind::edabits}, {"bit_triples", spdz2k::Kind::bit_triples},
      {"bits", spdz2k::Kind::bits},       {"squares", spdz2k::Kind::squares},
      {"triples", spdz2k::Kind::triples}, {"matrices", spdz2k::Kind::matrix_triples},
      {"masks", spdz2k::Kind::masks},     {"randoms", spdz2k::Kind::randoms}};
  const std::size_t space = std::min(name.find(' '), name.size());
  const auto kind = kKinds.find(name.substr(0, space));
  if (kind == kKinds.end()) throw InvalidArgument("no correlations are named " + name);
  spdz2k::Item item{kind->second};
  const bool edabits = item.kind == spdz2k::Kind::edabits,
             matrices = item.kind == spdz2k::Kind::matrix_triples;
  if (!edabits && !matrices && item.kind != spdz2k::Kind::masks) {
    expect(space == name.size(), "nothing follows this name");
    return item;
  }
  std::array<i64, 3> read{};
  const std::span<i64> numbers = std::span<i64>(read).first(matrices ? 3 : 1);
  bool fits =
      space < name.size() && read_numbers(std::string_view(name).substr(space + 1), numbers);
  for (const i64 number : numbers) {
    const i64 least = item.kind == spdz2k::Kind::masks ? 0 : 1;
    const i64 most = matrices ? i64{1} << 20 : edabits ? 64 : 1;
    fits = fits && least <= number && number <= most;
  }
  expect(fits, "a width, a rank or a shape must follow the name");
  if (matrices) {
    item.shape = {read[0], read[1], read[2]};
  } else {
    item.width = static_cast<int>(read[0]);
  }
  return item;
}

template <class R>
spdz2k::PreprocessingSupply<R>& supply_of(spdz2k::Session<R>& session) {
  auto* supply = dynamic_cast<spdz2k::PreprocessingSupply<R>*>(&session.supply());
  expect(supply != nullptr, "ideal correlations are not worth keeping");
  return *supply;
}

py::bytes seal_active(ActiveSession& session, const crypto::Seal& seal, const std::string& name,
                      i64 count, const py::bytes& context) {
  expect(!session.metering(), "a meter has no correlations");
  const Bytes place = view_of(context);
  std::vector<u8> sealed;
  session.run_locally([&]<class R>(spdz2k::Session<R>& s) {
    if (name == kKey) {
      expect(count == 1, "a session has one part of the key");
      const WipedVector<typename R::Word> key(1, s.alpha());
      sealed = seal.seal({reinterpret_cast<const u8*>(key.data()), sizeof key[0]}, place);
      return;
    }
    const spdz2k::Item item = item_of(name);
    auto& supply = supply_of(s);
    expect(0 <= count && count <= count_of(supply.stock(), item),
           "seal_active: reserve that many first");
    WipedVector<u8> plain(supply.bytes_of(item, count));
    supply.take_out(item, count, plain);
    sealed = seal.seal(plain, place);
  });
  return bytes_of(sealed);
}

bool unseal_active(ActiveSession& session, const crypto::Seal& seal, const std::string& name,
                   i64 count, const py::bytes& sealed, const py::bytes& context) {
  expect(!session.metering(), "a meter has no correlations");
  expect(count >= 0, "count must not be negative");
  const spdz2k::Item item = item_of(name);
  const Bytes in = view_of(sealed), place = view_of(context);
  bool opened = false;
  session.run_locally([&]<class R>(spdz2k::Session<R>& s) {
    auto& supply = supply_of(s);
    const i64 size = std::ssize(in) - crypto::Seal::kOverhead;
    if (size < 0 || !supply.fits(item, count, size)) return;
    WipedVector<u8> plain(size);
    opened = seal.open(in, place, plain);
    if (opened) supply.put_in(item, count, plain);
  });
  return opened;
}

i64 active_bytes(int ring, const std::string& name) {
  expect(ring == 32 || ring == 64, "the ring has 32 or 64 bits");
  const auto bytes = [&]<class R>() -> i64 {
    if (name == kKey) return sizeof(typename R::Word);
    return spdz2k::PreprocessingSupply<R>::bytes_of(item_of(name), 1);
  };
  return ring == 64 ? bytes.template operator()<spdz2k::Ring64>()
                    : bytes.template operator()<spdz2k::Ring32>();
}

std::unique_ptr<ActiveSession> stored_active_session(std::shared_ptr<net::Channel> channel,
                                                     int rank, int ring, const crypto::Seal& seal,
                                                     const py::bytes& sealed_key,
                                                     const py::bytes& context) {
  const Bytes in = view_of(sealed_key);
  WipedVector<u8> key(active_bytes(ring, kKey));
  if (std::ssize(in) != std::ssize(key) + crypto::Seal::kOverhead) return nullptr;
  if (!seal.open(in, view_of(context), key)) return nullptr;
  return std::make_unique<ActiveSession>(std::move(channel), rank, ring, key);
}

}  // namespace

void define_active_store(py::module_& m) {
  m.def("seal_active", &seal_active, "session"_a, "seal"_a, "name"_a, "count"_a, "context"_a,
        "Takes `count` correlations of a kind out of the session's stock, for good: triples, "
        "squares, bits, bit_triples, randoms, `masks OWNER`, `edabits WIDTH`, `matrices "
        "ROWSxINNERxCOLUMNS`. Or a copy of `key`, this party's part of the MAC key, under which "
        "they are worth something.");
  m.def("unseal_active", &unseal_active, "session"_a, "seal"_a, "name"_a, "count"_a, "sealed"_a,
        "context"_a,
        "Puts them into a stored session's stock; False when the bytes were altered or belong "
        "elsewhere.");
  m.def("active_bytes", &active_bytes, "ring"_a, "name"_a, "Of one of a kind, not sealed.");
  m.def("stored_active_session", &stored_active_session, "channel"_a, "rank"_a, "ring"_a, "seal"_a,
        "sealed_key"_a, "context"_a,
        "A session that makes no correlations, under a key of an earlier one; None when the bytes "
        "were altered or belong elsewhere.");
}

}  // namespace privml::bindings
