// SPDX-License-Identifier: Apache-2.0
// Everything that reads a peer's or a file's bytes, each as a function of arbitrary bytes.
//
// A target returns for every input, whatever the bytes: it throws nothing (what a peer may cause is
// caught within), reads nothing out of bounds, allocates no more than the protocol's public sizes
// ask for, and ends. docs/testing.md says how the targets are run.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "fuzz/dialogue.h"

namespace privml::fuzz {

struct Target {
  const char* name;
  void (*run)(Bytes);
  // The dialogues behind it, none if it has none.
  std::span<const Dialogue> (*dialogues)();
};

std::span<const Target> targets();
// Null if there is none of this name.
const Target* find_target(std::string_view name);

// ---- net
void run_frames(Bytes input);
void run_sockets(Bytes input);
void run_tls(Bytes input);
void run_emp(Bytes input);
// ---- crypto
void run_seal(Bytes input);
// ---- protocols
std::span<const Dialogue> base_transfers();
std::span<const Dialogue> softspoken();
std::span<const Dialogue> silent();
std::span<const Dialogue> sessions();
std::span<const Dialogue> transfers();
std::span<const Dialogue> lattice_products();
std::span<const Dialogue> fixed_point();
std::span<const Dialogue> functions();
std::span<const Dialogue> floating_point();
std::span<const Dialogue> active_online();
std::span<const Dialogue> active_preprocessing();

}  // namespace privml::fuzz
