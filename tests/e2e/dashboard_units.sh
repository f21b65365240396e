#!/usr/bin/env bash
# The dashboard's page without a browser: types and pure functions (web/src/model). Skipped where npm or its packages cannot be had.
cd "$(dirname "$0")/../../web" || exit 1
skip() { echo "skipped: $1"; echo "0 passed, 0 failed"; exit 0; }
command -v npm >/dev/null || skip "npm is not there"
[ -d node_modules/esbuild ] || skip "the page's packages are not there (web/build.sh gets them)"
log=$(mktemp); trap 'rm -f "$log"' EXIT
npm run --silent check >"$log" 2>&1 && types=1 || { types=0; head -20 "$log"; }
npm test --silent >"$log" 2>&1
passed=$(sed -n 's/^# pass //p' "$log") failed=$(sed -n 's/^# fail //p' "$log")
[ "${failed:-1}" = 0 ] || grep -E -A12 '^not ok' "$log"
echo "$((${passed:-0} + types)) passed, $((${failed:-1} + 1 - types)) failed"
[ "${failed:-1}" = 0 ] && [ $types = 1 ]
