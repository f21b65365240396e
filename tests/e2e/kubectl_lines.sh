#!/usr/bin/env bash
# Lines that people type, good and bad: what kubectl printed at a real cluster is what it prints here (tests/e2e/kubectl/README.md).
. "$(dirname "$0")/lib.sh"
recorded="v1.32.4"
if [[ $(kubectl version --client 2>/dev/null) != *"$recorded"* ]]; then
  echo "skipped: the lines were recorded with kubectl $recorded"; echo "0 passed, 0 failed"; exit 0
fi
echo 'lines-token,admin,admin,"system:masters"' >"$work/tokens.csv"
start_up --nodes 3 --token-auth-file "$work/tokens.csv"
kubectl config set-credentials lines --token=lines-token >/dev/null
kubectl config set-context --current --user=lines >/dev/null
python3 "$root/tests/e2e/kubectl/record.py" replay "$(command -v kubectl)" "$KUBECONFIG" "$root/tests/e2e/kubectl/answers.jsonl.gz"
