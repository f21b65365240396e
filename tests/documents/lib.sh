# Shared by the documents' scripts. Each types its document's commands in the document's order, `oc` being a link to berth, and cites the section
# before every check. What differs on purpose is in docs/differences.md.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
mkdir -p "$work/bin" && ln -s "$berth" "$work/bin/oc"
PATH=$work/bin:$PATH
examples=$root/examples files=$root/tests/documents/files at=
section() { at=$1; }
doc() { # doc WANTED COMMAND...: typing the command prints the text
  local wanted=$1; shift
  check "$at: $*" says "$wanted" "$@"
}
soon() { # soon WANTED COMMAND...: within some seconds it does
  local wanted=$1; shift
  check "$at: $* (soon)" eventually 30 says "$wanted" "$@"
}
never_says() { ! says "$@"; }
holds() { # holds DESCRIPTION COMMAND...
  local what=$1; shift
  check "$at: $what" "$@"
}
soon_holds() { local what=$1; shift; check "$at: $what" eventually 30 "$@"; }
field() { oc get "$1" "$2" -o json | python3 -c '
import json, sys
value = json.load(sys.stdin)
for part in sys.argv[1].split("."):
    value = value.get(part, "") if isinstance(value, dict) else ""
print(value if isinstance(value, str) else json.dumps(value))' "$3"; }
is() { local got; got=$(field "$1" "$2" "$3"); [ "$got" = "$4" ] || { echo "got $got, wanted $4"; return 1; }; }
on() { is pod "$1" spec.nodeName "$2"; } # on POD NODE
off() { local node; node=$(field pod "$1" spec.nodeName); [ -n "$node" ] && [ "$node" != "$2" ] || { echo "it is on $node"; return 1; }; }
pends() { [ -z "$(field pod "$1" spec.nodeName)" ] && says FailedScheduling oc describe pod "$1"; }
running() { is pod "$1" status.phase Running; }
gone() { refused oc get pod "$1"; }
clear_pods() { oc delete pods --all --now --ignore-not-found >/dev/null 2>&1; }
ready() { eventually 30 kubectl wait --for=condition=Ready node --all --timeout=1s >/dev/null; }
make() { printf '# The keys are bare: no JSON.\n%s\n' "$1" | oc create -f -; } # make OBJECT
pinned() { # pinned NODE FILE: the file's pod, for that node alone
  oc create --dry-run=client -o json -f "$2" | python3 -c '
import json, sys
pod = json.load(sys.stdin)
pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": sys.argv[1]}
print(json.dumps(pod))' "$1" | oc create -f -
}
