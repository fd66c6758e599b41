// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry to the target PRIVML_FUZZ_TARGET.
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const privml::u8* data, size_t size) {
  static const privml::fuzz::Target* target = privml::fuzz::find_target(PRIVML_FUZZ_TARGET);
  if (target == nullptr) {
    std::fprintf(stderr, "there is no target %s\n", PRIVML_FUZZ_TARGET);
    std::abort();
  }
  target->run({data, size});
  return 0;
}
