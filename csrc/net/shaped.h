// SPDX-License-Identifier: Apache-2.0
// Simulated networks for parties on one machine.
#pragma once

#include "net/channel.h"

namespace privml::net {

// Adds a one-way delay and a bandwidth (0: unlimited) to what `channel` receives; bytes and depth
// stay as they are. Shape both ends for a symmetric link. Takes channels of memory.h and tcp.h.
std::unique_ptr<Channel> make_shaped(std::unique_ptr<Channel> channel,
                                     std::chrono::nanoseconds delay, double bits_per_second);

}  // namespace privml::net
