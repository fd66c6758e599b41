// SPDX-License-Identifier: Apache-2.0
#include "net/shaped.h"

#include "base/error.h"
#include "net/framed.h"

namespace privml::net {

std::unique_ptr<Channel> make_shaped(std::unique_ptr<Channel> channel,
                                     std::chrono::nanoseconds delay, double bits_per_second) {
  auto* framed = dynamic_cast<FramedChannel*>(channel.get());
  expect(framed != nullptr, "only memory and TCP channels can be shaped");
  expect(delay.count() >= 0 && bits_per_second >= 0, "delay and bandwidth must not be negative");
  framed->shape(delay, bits_per_second);
  return channel;
}

}  // namespace privml::net
