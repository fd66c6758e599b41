# SPDX-License-Identifier: Apache-2.0
"""What a query will take before anybody runs it: time on this machine and a link, and which engine, numbers and
transfers to choose."""
