// SPDX-License-Identifier: Apache-2.0
// TLS between two parties, with somebody on the line who changes bytes of either direction, or one
// party that meets arbitrary bytes. Nothing that was changed may reach the reader.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "fuzz/certificates.h"
#include "fuzz/targets.h"

namespace privml::fuzz {
namespace {

constexpr size_t kChangeBytes = 6;
constexpr size_t kPiece = 16384;
constexpr int kMostTurns = 64;
constexpr std::array<u8, 5> kMessage{'h', 'e', 'l', 'l', 'o'};

struct Pair {
  std::array<int, 2> ends;
  Pair() {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
      throw std::logic_error("no socket");
  }
  ~Pair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Pair(const Pair&) = delete;
};

// Changes of six bytes: lowest bit the direction, next two what (change a byte, drop it, double it,
// end the stream), place (3), value (2).
struct Line {
  Bytes changes;
  std::array<size_t, 2> passed{};
  std::array<bool, 2> ended{};

  std::vector<u8> change(Bytes piece, size_t direction) {
    std::vector<u8> out;
    for (const u8 byte : piece) {
      const size_t place = passed[direction]++;
      out.push_back(byte);
      for (size_t i = 0; i + kChangeBytes <= changes.size(); i += kChangeBytes) {
        const Bytes c = changes.subspan(i, kChangeBytes);
        const size_t at = size_t{c[1]} | size_t{c[2]} << 8 | size_t{c[3] & 3u} << 16;
        if ((c[0] & 1) != direction || at != place) continue;
        switch (c[0] >> 1 & 3) {
          case 0:
            out.back() ^= static_cast<u8>(c[4] == 0 ? 1 : c[4]);
            break;
          case 1:
            out.pop_back();
            break;
          case 2:
            out.insert(out.end(), size_t{c[4]} + 1, byte);
            break;
          default:
            ended[direction] = true;
        }
        if (out.empty()) break;
      }
      if (ended[direction]) break;
    }
    return out;
  }

  // Whether anything moved from `from` to `to`.
  bool carry(int from, int to, size_t direction) {
    std::array<u8, kPiece> piece;
    const ssize_t n = recv(from, piece.data(), piece.size(), 0);
    if (n <= 0 || ended[direction]) return false;
    const std::vector<u8> out = change({piece.data(), static_cast<size_t>(n)}, direction);
    if (!out.empty() && send(to, out.data(), out.size(), MSG_NOSIGNAL) < 0) return false;
    if (ended[direction]) shutdown(to, SHUT_WR);
    return true;
  }
};

// One party: shakes hands, sends a message and reads one.
struct Party {
  std::unique_ptr<net::SocketStream> stream;
  bool dead = false, ready = false, sent = false;
  std::vector<u8> received;

  void advance() {
    if (dead) return;
    dead = ending_of([&] {
             if (!ready) ready = stream->prepare() == 0;
             if (!ready) return;
             if (!sent) sent = stream->send_some({}, kMessage) == static_cast<i64>(kMessage.size());
             std::array<u8, 64> piece;
             const i64 n = stream->receive_some(piece);
             if (n > 0) received.insert(received.end(), piece.begin(), piece.begin() + n);
             if (n < 0) throw PeerDisconnected("the stream has ended");
           }) == Ending::refused;
  }
};

void meet_bytes(net::TlsRole role, Bytes script) {
  Pair pair;
  Party party;
  party.stream = identities()[0].stream(pair.ends[0], role);
  const Bytes sent = script.first(std::min<size_t>(script.size(), 65536));
  if (!sent.empty()) send(pair.ends[1], sent.data(), sent.size(), MSG_NOSIGNAL);
  shutdown(pair.ends[1], SHUT_WR);
  for (int turn = 0; turn < kMostTurns && !party.dead; ++turn) party.advance();
  if (!party.dead || party.ready) throw std::logic_error("TLS took bytes for a peer");
}

}  // namespace

void run_tls(Bytes input) {
  if (input.empty()) return;
  if ((input[0] & 2) != 0) {
    meet_bytes((input[0] & 1) != 0 ? net::TlsRole::connecting : net::TlsRole::listening,
               input.subspan(1));
    return;
  }
  Pair first, second;
  std::array<Party, 2> parties;
  parties[0].stream = identities()[0].stream(first.ends[0], net::TlsRole::listening);
  parties[1].stream = identities()[1].stream(second.ends[0], net::TlsRole::connecting);
  Line line{input.subspan(1, std::min<size_t>(input.size() - 1, 16 * kChangeBytes))};
  for (int turn = 0, still = 0; turn < kMostTurns && still < 2; ++turn) {
    parties[1].advance();
    bool moved = line.carry(second.ends[1], first.ends[1], 1);
    parties[0].advance();
    moved |= line.carry(first.ends[1], second.ends[1], 0);
    still = moved ? 0 : still + 1;
  }
  for (const Party& party : parties) {
    const bool whole = party.received.size() <= kMessage.size() &&
                       std::equal(party.received.begin(), party.received.end(), kMessage.begin());
    if (!whole) throw std::logic_error("TLS let changed bytes through");
  }
  const bool unchanged = line.changes.size() < kChangeBytes;
  if (unchanged && (parties[0].received.empty() || parties[1].received.empty()))
    throw std::logic_error("TLS refuses an honest peer");
}

}  // namespace privml::fuzz
