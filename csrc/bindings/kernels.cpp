// SPDX-License-Identifier: Apache-2.0
// Which kernels of oblivious transfers this machine runs.
#include <pybind11/pybind11.h>

#include "base/transpose.h"
#include "crypto/aes.h"
#include "crypto/gf128.h"
#include "crypto/lane_digest.h"

namespace py = pybind11;

namespace privml::bindings {

void define_kernels(py::module_& m) {
  m.def(
      "transfer_kernels",
      [] {
        py::dict kernels;
        kernels["AES"] = crypto::aes_backend_name(crypto::best_aes_backend());
        kernels["transposes"] = transpose_kernel();
        kernels["checks"] = crypto::gf128_kernel();
        kernels["digests"] = crypto::lane_digest_kernel();
        return kernels;
      },
      "The instruction sets that oblivious transfers use here, by task. PRIVML_CPU limits them.");
}

}  // namespace privml::bindings
