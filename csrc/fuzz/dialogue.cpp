// SPDX-License-Identifier: Apache-2.0
#include "fuzz/dialogue.h"

#include <exception>
#include <thread>

#include "base/error.h"
#include "fuzz/scripted.h"
#include "net/memory.h"

namespace privml::fuzz {

Dialogue::Dialogue(Side side) : side_(std::move(side)) {
  auto [first, second] = net::make_memory_channels();
  std::array<std::unique_ptr<net::Channel>, 2> channels{std::move(first), std::move(second)};
  std::array<std::exception_ptr, 2> failures;
  const auto run = [&](size_t rank) {
    try {
      ListeningChannel channel(*channels[rank], received_[rank]);
      side_(channel, static_cast<int>(rank));
      channel.flush();
    } catch (...) {
      failures[rank] = std::current_exception();
      channels[0]->close();
      channels[1]->close();
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

Ending Dialogue::run_alone(int rank, Bytes script) const {
  return ending_of([&] {
    ScriptedChannel channel(script);
    side_(channel, rank);
  });
}

Ending ending_of(const std::function<void()>& run) {
  try {
    run();
    return Ending::completed;
  } catch (const SecurityAbort&) {
  } catch (const ProtocolError&) {
  } catch (const PeerDisconnected&) {
  } catch (const IdentityError&) {
  }
  return Ending::refused;
}

void run_any(std::span<const Dialogue> dialogues, Bytes input) {
  if (input.empty()) return;
  const int rank = input[0] & 1;
  const bool as_they_are = (input[0] & 2) != 0;
  const Dialogue& dialogue = dialogues[(input[0] >> 2) % dialogues.size()];
  const Bytes rest = input.subspan(1);
  if (as_they_are) {
    dialogue.run_alone(rank, rest);
  } else {
    dialogue.run_alone(rank, edited(dialogue.received(rank), rest));
  }
}

}  // namespace privml::fuzz
