// SPDX-License-Identifier: Apache-2.0
// The innermost loops of OT extension with each AES backend's instructions: AES and what uses its
// outputs in one pass, so that they need not leave the registers. Every loop has a portable twin,
// beside its subject: half_tree.cpp, lpn.cpp and vole_fold.cpp.
#pragma once

#include "crypto/aes.h"

namespace privml::ot {

// A change of one of many nodes whose place is secret.
struct TreePatch {
  u64 place;
  crypto::Block value;
};
inline constexpr TreePatch kNoPatch{~u64{0}, {}};

struct LevelSums {
  crypto::Block left;
  crypto::Block parents;
};

// Rows of the LPN code, 64 at a time: the generator's round keys and its first counter, the length
// of the secret, and the secret.
struct LpnRows {
  const crypto::Block* round_keys;
  crypto::Block counter;
  u64 length;
  const crypto::Block* secret;
};

// What happens to a row before code is added: all bits but those of `keep` are cleared, and the
// lowest bit of row `hole` is set.
struct RowNoise {
  crypto::Block keep;
  u64 hole;
};

// Places for the planes of small-field VOLE, see vole_fold.h.
struct FoldPlanes;

// All constant time: no branch and no address depends on nodes, patches or holes.
struct OtKernels {
  // One level of a half tree: `count` parents, a power of two, at the front of `nodes`, patched,
  // become 2 * count children.
  LevelSums (*grow)(const crypto::Block* round_keys, crypto::Block* nodes, i64 count,
                    const TreePatch& patch);
  // Applies both patches to `count` nodes, a multiple of 4.
  void (*patch)(crypto::Block* nodes, i64 count, const TreePatch& a, const TreePatch& b);
  // Noise, then code to `count` rows, a multiple of 64.
  void (*add_rows)(const LpnRows& code, const RowNoise& noise, crypto::Block* rows, i64 count);
  // vole_expand() for digit >= 1; round keys of seed x stand `key_stride` blocks after those of
  // seed x - 1.
  void (*expand)(const crypto::Block* round_keys, i64 key_stride, int digit, u64 position,
                 i64 blocks, crypto::Block* total, const FoldPlanes& planes);
};

// Those of `backend`, or none if it is the portable one.
const OtKernels* ot_kernels(crypto::AesBackend backend);

// One set each: the first on 64-bit Arm only, the others on x86-64 only.
extern const OtKernels kOtKernelsNeon;
extern const OtKernels kOtKernelsAesni;
extern const OtKernels kOtKernelsAvx2;
extern const OtKernels kOtKernelsVaes256;
extern const OtKernels kOtKernelsVaes512;

}  // namespace privml::ot
