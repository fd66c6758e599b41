// SPDX-License-Identifier: Apache-2.0
// An authority and two parties' certificates that live as long as the process, for fuzzing TLS.
#pragma once

#include <array>

#include "net/tls.h"

namespace privml::fuzz {

// Identities of the parties "alice" and "bob", which expect each other.
const std::array<net::TlsIdentity, 2>& identities();

}  // namespace privml::fuzz
