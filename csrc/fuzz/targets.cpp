// SPDX-License-Identifier: Apache-2.0
#include "fuzz/targets.h"

#include <array>

namespace privml::fuzz {
namespace {

std::span<const Dialogue> no_dialogues() { return {}; }

template <auto dialogues>
void meet_one(Bytes input) {
  run_any(dialogues(), input);
}

template <auto dialogues>
constexpr Target protocol(const char* name) {
  return {name, meet_one<dialogues>, dialogues};
}

constexpr std::array kTargets{
    Target{"frames", run_frames, no_dialogues},
    Target{"sockets", run_sockets, no_dialogues},
    Target{"tls", run_tls, no_dialogues},
    Target{"emp", run_emp, no_dialogues},
    Target{"seal", run_seal, no_dialogues},
    protocol<base_transfers>("base_transfers"),
    protocol<softspoken>("softspoken"),
    protocol<silent>("silent"),
    protocol<sessions>("sessions"),
    protocol<transfers>("transfers"),
    protocol<lattice_products>("lattice_products"),
    protocol<fixed_point>("fixed_point"),
    protocol<functions>("functions"),
    protocol<floating_point>("floating_point"),
    protocol<active_online>("active_online"),
    protocol<active_preprocessing>("active_preprocessing"),
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace privml::fuzz
