// SPDX-License-Identifier: Apache-2.0
// PRIVML_TARGET_CLONES before the definition of a function compiles it for several instruction sets
// and picks one when the program is loaded, so that portable builds keep wide vectors in hot loops.
// Loops belong into the function itself: what is called and not inlined stays at the baseline.
// Empty if the loader cannot choose (other systems and compilers) and under sanitizers, which
// are not yet running at that time.
#pragma once

#include <cstdlib>  // defines __GLIBC__

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && __GNUC__ >= 12 && \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PRIVML_TARGET_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PRIVML_TARGET_CLONES
#endif
