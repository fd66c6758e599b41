// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/session.h"

#include "base/error.h"
#include "base/wipe.h"

namespace privml::spdz2k {

template <class R>
Session<R>::Session(int rank, net::Channel& channel, crypto::Prg& prg, Word key)
    : rank(rank), channel(channel), prg(prg), alpha_(key), coins_(rank, channel, prg) {
  expect(rank == 0 || rank == 1, "session: rank is 0 or 1");
  expect(key >> R::s == 0, "session: the key has s bits");
}

template <class R>
Session<R>::~Session() {
  wipe(&alpha_, sizeof alpha_);
}

template <class R>
Supply<R>& Session<R>::supply() {
  require_alive();
  expect(supply_ != nullptr, "session: no supply was set");
  return *supply_;
}

template <class R>
crypto::Block Session<R>::toss() {
  require_alive();
  try {
    return coins_.toss();
  } catch (const SecurityAbort& error) {
    abort(error.what());
  }
}

template <class R>
void Session<R>::require_alive() const {
  if (!cause_.empty()) throw SecurityAbort("this session has ended: " + cause_);
}

template <class R>
void Session<R>::abort(const std::string& cause) {
  cause_ = cause;
  wipe(&alpha_, sizeof alpha_);
  openings.wipe();
  throw SecurityAbort(cause);
}

template <class R>
typename R::Word draw_key(crypto::Prg& prg) {
  typename R::BitWord key;  // s bits
  prg.fill_bytes({reinterpret_cast<u8*>(&key), sizeof key});
  return key;
}

template <class R>
std::unique_ptr<Session<R>> make_session(ot::Party& party) {
  return std::make_unique<Session<R>>(party.rank, party.channel, party.prg, draw_key<R>(party.prg));
}

#define PRIVML_INSTANTIATE(R)                          \
  template class Session<R>;                           \
  template typename R::Word draw_key<R>(crypto::Prg&); \
  template std::unique_ptr<Session<R>> make_session<R>(ot::Party&);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
