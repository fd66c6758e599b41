// SPDX-License-Identifier: Apache-2.0
#include "lattice/residue_key.h"

namespace privml::lattice {
namespace {

Small negated(Small small) {
  for (signed char& x : small) x = static_cast<signed char>(-x);
  return small;
}

}  // namespace

Residues transformed(const ResidueRing& ring, Residues a) {
  ring.transform(a, ring.n());
  return a;
}

ResidueKey::ResidueKey(const WideSet& set, crypto::Prg& prg)
    : ring(set.ring.n, set.used()),
      small(sample_secret(prg, set.ring.n, most_secret_weight(set.ring.n))),
      secret(transformed(ring, ring.of_small(small))),
      negative(transformed(ring, ring.of_small(negated(small)))) {}

Residues ResidueKey::encryption(crypto::Block seed, crypto::Prg& prg,
                                const Residues& message) const {
  Residues out = ring.product(transformed(ring, ring.uniform(seed)), negative);
  for (size_t i = 0; i < message.size(); ++i) out[i] += message[i];
  if (!message.empty()) ring.reduce(out);
  ring.restore(out);
  Small error(ring.n());
  sample_error(prg, error);
  ring.add_small(error, out);
  return out;
}

TorusVector ResidueKey::times_secret(std::span<const Torus> c1) const {
  Residues product = ring.product(transformed(ring, ring.of_torus(c1)), secret);
  ring.restore(product);
  return ring.to_torus(product);
}

Blinding::Blinding(crypto::Prg& prg, i64 n) : u(n), error(n) {
  sample_ternary(prg, u);
  sample_error(prg, error);
}

void blind(const ResidueRing& ring, const ResiduePair& key, const Blinding& by, ResiduePair& out) {
  const Residues u = transformed(ring, ring.of_small(by.u));
  const Residues *const factor[] = {&u}, *const p0[] = {&key.c0}, *const p1[] = {&key.c1};
  ring.add_products(p0, factor, false, out.c0);
  ring.add_products(p1, factor, false, out.c1);
  ring.restore(out.c0);
  ring.restore(out.c1);
  ring.add_small(by.error, out.c1);
}

}  // namespace privml::lattice
