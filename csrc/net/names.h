// SPDX-License-Identifier: Apache-2.0
// The names by which the two sides of a connection are certified.
#pragma once

#include <string>
#include <vector>

namespace privml::net {

// Empty on connections without TLS; `peer` also before the peer has proved one of them.
struct CertifiedNames {
  std::vector<std::string> own;
  std::vector<std::string> peer;
};

}  // namespace privml::net
