// SPDX-License-Identifier: Apache-2.0
// Two connected channels inside one process.
#pragma once

#include "net/channel.h"

namespace privml::net {

// Each end is used by one thread; writers never wait.
ChannelPair make_memory_channels();

}  // namespace privml::net
