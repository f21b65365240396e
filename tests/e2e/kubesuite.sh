#!/usr/bin/env bash
# The black-box suite beside the project, where it is there: checks that pass on real Kubernetes.
. "$(dirname "$0")/lib.sh"
suite=${BERTH_SHARED:-$root/../shared}/kubesuite/suite.py
[ -f "$suite" ] || { echo "SKIP kubesuite is not here"; echo "0 passed, 0 failed"; exit 0; }
start_up --nodes 6
python3 "$suite" --kubeconfig "$KUBECONFIG" --slowdown 2 ${BERTH_SUITE_FLAGS:-} >"$work/suite.log" 2>&1
grep -A4 '^FAIL' "$work/suite.log"
tail -n 1 "$work/suite.log" | grep -qE '^[0-9]+ passed' && { tail -n 1 "$work/suite.log"; grep -q ' 0 failed' <(tail -n 1 "$work/suite.log"); exit; }
tail -n 20 "$work/suite.log"; echo "0 passed, 1 failed"; exit 1
