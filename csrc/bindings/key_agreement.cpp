// SPDX-License-Identifier: Apache-2.0
// Python names of a Diffie-Hellman agreement: a key that two parties share and no eavesdropper
// knows. Nobody is authenticated: someone in the middle of the connection can agree with both.
// Source: X25519 (RFC 7748) through libsodium; the key is the BLAKE2b hash of the common point and
// of both public keys.
#include <sodium.h>

#include <array>

#include "base/wipe.h"
#include "bindings/arrays.h"
#include "bindings/bytes.h"

namespace privml::bindings {
namespace {

using Key = std::array<u8, crypto_scalarmult_BYTES>;
static_assert(sizeof(Key) == 32 && crypto_scalarmult_SCALARBYTES == sizeof(Key));

const u8* key_of(std::string_view text, const char* name) {
  if (text.size() != sizeof(Key)) throw InvalidArgument(std::string(name) + ": a key has 32 bytes");
  return reinterpret_cast<const u8*>(text.data());
}

void start_sodium() {
  if (sodium_init() < 0) throw std::runtime_error("libsodium does not start");
}

py::tuple key_pair() {
  start_sodium();
  Key secret, shown;
  randombytes_buf(secret.data(), secret.size());
  crypto_scalarmult_base(shown.data(), secret.data());
  py::tuple pair = py::make_tuple(bytes_of(secret), bytes_of(shown));
  wipe(secret.data(), secret.size());
  return pair;
}

py::bytes common_key(std::string_view secret, std::string_view first, std::string_view second,
                     bool second_is_theirs) {
  start_sodium();
  const u8 *a = key_of(first, "first"), *b = key_of(second, "second");
  Key point, key;
  if (crypto_scalarmult(point.data(), key_of(secret, "secret"), second_is_theirs ? b : a) != 0)
    throw ProtocolError("the peer's public key is none; is it a privml party?");
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, key.size());
  crypto_generichash_update(&state, point.data(), point.size());
  crypto_generichash_update(&state, a, sizeof(Key));
  crypto_generichash_update(&state, b, sizeof(Key));
  crypto_generichash_final(&state, key.data(), key.size());
  py::bytes result = bytes_of(key);
  wipe(point.data(), point.size());
  wipe(key.data(), key.size());
  wipe(&state, sizeof state);
  return result;
}

}  // namespace

void define_key_agreement(py::module_& m) {
  m.def("key_pair", &key_pair, "A fresh (secret key, public key), 32 bytes each.");
  m.def("common_key", &common_key, "secret"_a, "first"_a, "second"_a, "second_is_theirs"_a,
        "The 32 bytes that the owners of two public keys have in common, both naming the public "
        "keys in one order; ProtocolError for a public key that no secret key has.");
}

}  // namespace privml::bindings
