// SPDX-License-Identifier: Apache-2.0
// Messages of others in a product's flights: what is written and read with the first choices,
// before them, and with the last stream, behind it.
#pragma once

#include <functional>

#include "twopc/session/flight.h"

namespace privml::twopc {

struct Companion {
  std::function<void()> write_first, read_first, write_last, read_last;
};
struct CompanionFlights {
  Flight first, last;
};

}  // namespace privml::twopc
