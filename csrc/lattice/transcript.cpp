// SPDX-License-Identifier: Apache-2.0
#include "lattice/transcript.h"

#include <sodium.h>

#include <cstring>
#include <initializer_list>
#include <string_view>

namespace privml::lattice {
namespace {

class Hash {
 public:
  explicit Hash(std::string_view domain, size_t bytes) {
    crypto_generichash_init(&state_, nullptr, 0, bytes);
    add({reinterpret_cast<const u8*>(domain.data()), domain.size()});
  }
  // With its length, so that no two lists of parts are one string.
  void add(Bytes bytes) {
    add_number(bytes.size());
    crypto_generichash_update(&state_, bytes.data(), bytes.size());
  }
  void add_number(u64 number) {
    crypto_generichash_update(&state_, reinterpret_cast<const u8*>(&number), sizeof number);
  }
  void finish(MutableBytes out) { crypto_generichash_final(&state_, out.data(), out.size()); }

 private:
  crypto_generichash_state state_;
};

crypto::Block block_of(std::string_view domain, const Digest& digest,
                       std::initializer_list<u64> numbers) {
  Hash hash(domain, sizeof(crypto::Block));
  hash.add(digest);
  for (const u64 number : numbers) hash.add_number(number);
  crypto::Block out;
  hash.finish({reinterpret_cast<u8*>(&out), sizeof out});
  return out;
}

}  // namespace

Digest digest_of(const Transcript& transcript) {
  Digest out;
  Hash hash("privml lattice product", out.size());
  const auto& [owner, choice, shape, label] = transcript;
  for (const i64 number :
       {i64{owner}, choice.set.n, i64{choice.set.log_q}, i64{choice.dropped},
        i64{choice.answer_bits}, i64{choice.upload_bits}, shape.outputs, shape.inner})
    hash.add_number(static_cast<u64>(number));
  hash.add(label);
  hash.finish(out);
  return out;
}

Digest digest_of(const Transcript& transcript, const Digest& owner_nonce,
                 const Digest& client_nonce) {
  Digest out;
  Hash hash("privml lattice flight", out.size());
  hash.add(digest_of(transcript));
  hash.add(owner_nonce);
  hash.add(client_nonce);
  hash.finish(out);
  return out;
}

Digest digest_of(const Digest& weights, Bytes use) {
  Digest out;
  Hash hash("privml lattice weights in use", out.size());
  hash.add(weights);
  hash.add(use);
  hash.finish(out);
  return out;
}

crypto::Block tag_of(const Digest& digest, i64 batch, i64 columns) {
  return block_of("privml lattice tag", digest,
                  {static_cast<u64>(batch), static_cast<u64>(columns)});
}

crypto::Block tag_of_rows(const Digest& digest, i64 batch, i64 first, i64 rows) {
  return block_of("privml lattice rows", digest,
                  {static_cast<u64>(batch), static_cast<u64>(first), static_cast<u64>(rows)});
}

crypto::Block public_seed(const Digest& digest, PublicPart part, i64 index) {
  return block_of("privml lattice public half", digest,
                  {static_cast<u64>(part), static_cast<u64>(index)});
}

}  // namespace privml::lattice
