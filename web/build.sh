#!/usr/bin/env bash
# build.sh OUT.cpp: builds the dashboard's page into a C++ source; called by cmake. Packages come from npm's cache or registry, once, as the lock file
# has them. When they cannot be had, the page is left out and that is said: berth itself does not need it.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")"
exec 9<package-lock.json
flock 9
mkdir -p "$(dirname "$out")"
if ! cmp -s package-lock.json node_modules/.berth-lock; then
  if ! npm ci --prefer-offline --loglevel=error >"$out.log" 2>&1; then
    sed 's/^/  /' "$out.log" | tail -5 >&2
    echo "warning: npm cannot get the packages of the dashboard's page: berth is built without it. With a network, remove $out and build again." >&2
    printf '#include "dashboard/page.h"\n\nstd::span<const berth::dashboard::PageFile> berth::dashboard::page_files() { return {}; }\n' >"$out"
    exit 0
  fi
  cp package-lock.json node_modules/.berth-lock
fi
node build.mjs "$out"
