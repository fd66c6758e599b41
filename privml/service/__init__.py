# SPDX-License-Identifier: Apache-2.0
"""Serving and querying programs between processes."""

import torch.distributed

if torch.distributed.is_available():
    # torch loads this on the first operator of a tensor subclass; here no peer waits for it.
    import torch.distributed.tensor
