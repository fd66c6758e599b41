// SPDX-License-Identifier: Apache-2.0
// For tests: both parties of a session on two threads.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "base/error.h"
#include "net/memory.h"
#include "net/recorded.h"
#include "ot/setup.h"

namespace privml::ot::testing {

struct SessionRecord {
  std::array<net::Traffic, 2> traffic;  // since the end of setup
  std::array<Ledger, 2> ledger;
  std::array<std::string, 2> sent_hash;  // SHA-256 of what party 0 / 1 sent, setup included
};

// Runs body(0) and body(1) on two threads and rethrows a failure, if there are two the one that is
// not the disconnection that the other caused; `on_failure` must wake the other.
inline void run_pair(const std::function<void(int)>& body,
                     const std::function<void()>& on_failure) {
  std::array<std::exception_ptr, 2> failures, disconnections;
  const auto guarded = [&](int rank) {
    try {
      body(rank);
    } catch (const PeerDisconnected&) {
      disconnections[rank] = std::current_exception();
      on_failure();
    } catch (...) {
      failures[rank] = std::current_exception();
      on_failure();
    }
  };
  std::thread other(guarded, 1);
  guarded(0);
  other.join();
  for (const auto& caught : {failures, disconnections}) {
    for (const std::exception_ptr& failure : caught) {
      if (failure) std::rethrow_exception(failure);
    }
  }
}

inline OtConfig test_config(const std::string& provider, int k = 4,
                            const std::string& security = "semi_honest") {
  return {provider, k, security, crypto::Block{0x243f6a8885a308d3, 0x13198a2e03707344}};
}

// Sets both parties up with `config` over a memory channel and runs body(party) at each.
inline SessionRecord run_session(const OtConfig& config, const std::function<void(Party&)>& body) {
  auto [first, second] = net::make_memory_channels();
  std::array<std::unique_ptr<net::RecordedChannel>, 2> channels{
      std::make_unique<net::RecordedChannel>(std::move(first)),
      std::make_unique<net::RecordedChannel>(std::move(second))};
  SessionRecord record;
  run_pair(
      [&](int rank) {
        net::Channel& channel = *channels[rank];
        const auto resources = make_party_resources(channel, rank, config);
        const net::Traffic before = channel.traffic();
        body(resources->party());
        channel.flush();
        const net::Traffic after = channel.traffic();
        record.traffic[rank] = {after.sent - before.sent, after.received - before.received,
                                after.depth - before.depth};
        record.ledger[rank] = resources->party().ledger;
        record.sent_hash[rank] = channels[rank]->sent_hash();
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  return record;
}

}  // namespace privml::ot::testing
