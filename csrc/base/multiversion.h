// SPDX-License-Identifier: Apache-2.0
// PRIVML_TARGET_CLONES before a function compiles it for several instruction sets and picks one at
// load time, so that portable builds keep wide vectors in hot loops. Loops belong into the function
// itself: calls to functions that are not inlined stay at the baseline.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define PRIVML_TARGET_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PRIVML_TARGET_CLONES
#endif
