# SPDX-License-Identifier: Apache-2.0
from .train import main

main()
