// SPDX-License-Identifier: Apache-2.0
// The exceptions of the core; the bindings translate each to its Python counterpart.
#pragma once

#include <stdexcept>
#include <string>

namespace privml {

// An argument outside its documented range (Python: ValueError).
struct InvalidArgument : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// The peer closed, reset or never answered within the deadline (Python: PeerDisconnected).
struct PeerDisconnected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The peer sent bytes that the protocol does not allow (Python: ProtocolError).
struct ProtocolError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The peer is not the one expected, or refuses this party (Python: IdentityError).
struct IdentityError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A consistency or MAC check failed (Python: SecurityAbort).
struct SecurityAbort : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws InvalidArgument unless `condition` holds; active in every build type.
inline void expect(bool condition, const char* message) {
  if (!condition) throw InvalidArgument(message);
}

}  // namespace privml
