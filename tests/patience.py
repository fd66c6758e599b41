# SPDX-License-Identifier: Apache-2.0
"""How long tests wait, in seconds. Neither number decides a test on a slow machine."""

# For what takes a moment unless something is broken; below the limit of a test, so that the test can say what.
PATIENCE = 240.0
# A deadline beyond that limit: what ends sooner did not end by it.
ENDLESS = 3600.0
