# Shared by the end-to-end scripts: starts a control plane on free ports, counts checks, stops everything by pid.
# shellcheck shell=bash
# With pipefail, `| grep -q` may fail who still writes when it has seen enough: `| grep … >/dev/null` reads to the end.
set -uo pipefail
berth=$(realpath "${1:?usage: SCRIPT path/of/berth}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-e2e.XXXXXX")
export KUBECACHEDIR=$work/cache HOME=$work
passed=0 failed=0 up_pid= patience=${BERTH_PATIENCE:-3}

start_up() { # start_up FLAGS...: berth up in the background, on $listen if set; sets KUBECONFIG
  : >"$work/up.log"  # Or the lines of the start before would be taken for this one's.
  # Under nohup, too, a hangup is a signal to read the configuration again.
  env --default-signal=HUP "$berth" up --data-dir "$work/data" --listen "${listen:-127.0.0.1:0}" "$@" >"$work/up.log" 2>&1 &
  up_pid=$!
  for _ in $(seq $((100 * patience))); do
    grep -q '^export KUBECONFIG=' "$work/up.log" && break
    kill -0 "$up_pid" 2>/dev/null || { echo "FAIL berth up ended:"; cat "$work/up.log"; echo "0 passed, 1 failed"; exit 1; }
    sleep 0.1
  done
  KUBECONFIG=$(sed -n 's/^export KUBECONFIG=//p' "$work/up.log" | tail -n 1); export KUBECONFIG
}
stop_up() { # stop_up [SIGNAL]
  [ -n "$up_pid" ] || return 0
  kill "-${1:-TERM}" "$up_pid" 2>/dev/null
  wait "$up_pid" 2>/dev/null
  up_pid=
}
forget_rules() { :; }  # runtime.sh has one.
cleanup() { stop_up KILL; forget_rules; rm -rf "$work"; }
trap cleanup EXIT

check() { # check DESCRIPTION COMMAND...: passes when the command does
  local what=$1; shift
  if "$@" >"$work/out" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $what"; sed 's/^/     /' "$work/out" | head -8; fi
}
refused() { ! "$@"; }
says() { # says TEXT COMMAND...: the output contains the text, whatever the exit code
  local text=$1; shift
  "$@" >"$work/says" 2>&1
  grep -qF -- "$text" "$work/says" || { cat "$work/says"; echo "(wanted: $text)"; return 1; }
}
eventually() { # eventually SECONDS COMMAND...: seconds of a quiet machine; a loaded one gets $patience times as many
  local end=$((SECONDS + patience * $1)); shift
  until "$@" >"$work/eventually" 2>&1; do [ $SECONDS -lt $end ] || { cat "$work/eventually"; return 1; }; sleep 0.2; done
}
finish() { echo "$passed passed, $failed failed"; [ $failed -eq 0 ]; exit; }
