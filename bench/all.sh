#!/usr/bin/env bash
# Every promise of bench/promises.txt, by the build before and by this one in turn: a table of ratios after an hour.
#
#   bench/all.sh [COMMIT] [pairs.py's options: --minutes N, --rounds N, --only REGEX, --count, --record]
#
# COMMIT is what it is held against (the newest commit of main that this is not: HEAD itself where files differ from it, else the one before).
# It is built in a worktree below build/before, which stays for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then against=$1; shift
elif git diff --quiet HEAD -- src bench sdk; then against=HEAD~1
else against=HEAD; fi
commit=$(git rev-parse --verify --quiet "$against^{commit}") || { echo "bench/all.sh: there is no commit \"$against\"" >&2; exit 2; }
tree=build/before/tree
[ -d "$tree" ] || git worktree add --force --detach "$tree" "$commit" >/dev/null
git -C "$tree" checkout --quiet --detach "$commit"

build() {  # DIRECTORY of a checkout
  echo "building berth-bench and berth of $(git -C "$1" rev-parse --short HEAD)" >&2
  (cd "$1" && mkdir -p build && cmake --preset release >build/configure-bench.log && ninja -C build/release -j"${JOBS:-2}" berth berth-bench >build/build-bench.log) ||
    { tail -20 "$1/build/build-bench.log" >&2; exit 1; }
}
build "$tree"
build .
exec bench/pairs.py "$tree/build/release" build/release "$@"
