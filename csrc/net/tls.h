// SPDX-License-Identifier: Apache-2.0
// Mutual TLS 1.3: each party proves a name by a certificate of the authority that both trust.
//
// Functionality  a stream that nobody between the parties can read or change, to a peer whose
//                certificate the authority has signed, is valid now and bears an expected name.
// Method         OpenSSL. After its handshake the listening party says in one byte whether the
//                name suits it, then the connecting one: both sides of a refusal learn the reason.
// Leakage        the certificates' contents to the peer; lengths and times of messages to the
// network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/socket_stream.h"

namespace privml::net {

enum class TlsRole { connecting, listening };

// This party's certificate and key, the authority, and the names that peers may prove. Copies share
// what was loaded; any number of connections may use it at once.
class TlsIdentity {
 public:
  // PEM files: the authority's certificate, this party's certificate (with the chain to it) and its
  // private key without a passphrase. `peers`: names that the peer's certificate may bear as
  // subject alternative name of DNS kind; none: every name the authority has signed. Throws
  // InvalidArgument naming the file that cannot be used.
  TlsIdentity(const std::string& authority, const std::string& certificate, const std::string& key,
              std::vector<std::string> peers);
  // The same with other peers.
  TlsIdentity expecting(std::vector<std::string> peers) const;

  const std::vector<std::string>& peers() const { return peers_; }
  // Does not own the socket.
  std::unique_ptr<SocketStream> stream(int socket, TlsRole role) const;

 private:
  std::shared_ptr<void> context_;
  std::vector<std::string> peers_;
};

}  // namespace privml::net
