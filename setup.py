# SPDX-License-Identifier: Apache-2.0
"""The compiled core is built by CMake through scikit-build-core; all metadata stands in pyproject.toml."""

from setuptools import setup

setup(cmake_source_dir="csrc")
