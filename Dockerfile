# SPDX-License-Identifier: Apache-2.0
# docker build -t privml .    One party: `docker run privml serve ...`, deploy/ for parties that talk to each other.
# The wheel is built in one stage and installed in another, which has neither compiler nor sources.
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ libsodium-dev libssl-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in README.md CHANGELOG.md LICENSE ./
COPY csrc csrc
COPY configs configs
COPY models models
COPY privml privml
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM ${PYTHON} AS runtime
# The first without CUDA, from wherever pip finds it: --build-arg TORCH="torch==2.13.0+cpu" with an index of your own.
ARG TORCH=torch==2.13.0
RUN apt-get update \
 && apt-get install -y --no-install-recommends libsodium23 libssl3 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /tmp --shell /usr/sbin/nologin privml
COPY --from=build /wheels /wheels
RUN python -m pip install --no-cache-dir "${TORCH}" \
 && python -m pip install --no-cache-dir "$(echo /wheels/*.whl)[service]" \
 && rm -rf /wheels
# Nothing is written outside /tmp and what is mounted; names for programs that ask who runs them under another uid.
ENV HOME=/tmp LOGNAME=privml PRIVML_CACHE=/tmp/privml PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
WORKDIR /data
USER 10001:10001
ENTRYPOINT ["privml"]
CMD ["doctor"]
