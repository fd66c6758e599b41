// SPDX-License-Identifier: Apache-2.0
// Sealed data of a store: only what was sealed opens, whole, and under its own context.
#include <sodium.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "crypto/seal.h"
#include "fuzz/scripted.h"
#include "fuzz/targets.h"

namespace privml::fuzz {
namespace {

constexpr size_t kPlain = 200;

struct Sealed {
  std::array<u8, crypto::Seal::kKeyBytes> key{1, 2, 3};
  std::array<u8, 16> salt{4, 5, 6};
  std::vector<u8> plain = std::vector<u8>(kPlain, 7), context{'c', 'h', 'u', 'n', 'k', ' ', '0'};
  crypto::Seal seal{key, salt};
  std::vector<u8> bytes = seal.seal(plain, context);
};

}  // namespace

// First byte: lowest bit whether the rest is the sealed bytes as they are (else changes), next bit
// whether the context is another one.
void run_seal(Bytes input) {
  static const Sealed sealed;
  if (input.empty()) return;
  const bool as_they_are = (input[0] & 1) != 0, other_context = (input[0] & 2) != 0;
  const Bytes rest = input.subspan(1);
  const std::vector<u8> shown =
      as_they_are ? std::vector<u8>(rest.begin(), rest.end()) : edited(sealed.bytes, rest);
  const Bytes context = other_context ? Bytes(sealed.context).first(6) : Bytes(sealed.context);
  const bool whole = shown == sealed.bytes && !other_context;
  for (const size_t size : {kPlain, std::max<size_t>(shown.size(), 40) - 40}) {
    std::vector<u8> plain(size, 9);
    const bool opened = sealed.seal.open(shown, context, plain);
    if (opened != whole) throw std::logic_error("a seal opens what was not sealed");
    if (opened && plain != sealed.plain) throw std::logic_error("a seal opens to something else");
    if (!opened && std::any_of(plain.begin(), plain.end(), [](u8 byte) { return byte != 0; }))
      throw std::logic_error("a seal leaves what it could not authenticate");
  }
}

}  // namespace privml::fuzz
