// SPDX-License-Identifier: Apache-2.0
// How bytes get on and off a connected socket that never blocks: as they are, or under TLS (tls.h).
#pragma once

#include <memory>
#include <string>

#include "base/types.h"
#include "net/names.h"

namespace privml::net {

class SocketStream {
 public:
  virtual ~SocketStream() = default;
  // Goes on with what must precede the first byte. 0 when that is done, else the poll() events to
  // wait for. Throws IdentityError when the peer is not the one expected.
  virtual short prepare() = 0;
  // Sends some bytes of `header`, or of `payload` when the header is empty. Returns how many of
  // both together are done with, 0 when the socket takes none now, -1 when it never will.
  virtual i64 send_some(Bytes header, Bytes payload) = 0;
  // Bytes received into `bytes`; 0 when none are there now, -1 when none will come.
  virtual i64 receive_some(MutableBytes bytes) = 0;
  // The name that the peer's certificate proves; empty without TLS.
  virtual std::string peer_name() const = 0;
  // See Channel.
  virtual CertifiedNames names() const { return {}; }
};

// Bytes as they are. Does not own the socket.
std::unique_ptr<SocketStream> make_plain_stream(int socket);

}  // namespace privml::net
