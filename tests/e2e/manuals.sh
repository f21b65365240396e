#!/usr/bin/env bash
# Manual pages say what --help says: every command and verb has one, with every flag, and nothing of the machine that made them.
. "$(dirname "$0")/lib.sh"
"$root/tools/manuals" "$berth" "$work/man"
"$berth" --help | sed -nE 's/^  ([a-z][a-z-]*) {2,}\S.*/\1/p' >"$work/commands"
flags() { grep -oE -- '--[a-z][a-z0-9-]*' | sort -u; }
for page in "$work"/man/*.1; do
  name=$(basename "$page" .1) command=()
  [ "$name" = berth ] || read -ra command <<<"$(sed -n 's/^\.SH SYNOPSIS$/&/;T;n;s/\\//g;s/^fB//;p' "$page" | sed -E 's/^berth //; s/ *[][A-Z|].*//')"
  grep -qx -- "${name#berth-}" "$work/commands" && command=("${name#berth-}")
  HOME='~' "$berth" ${command[@]+"${command[@]}"} --help 2>/dev/null | flags | grep -vx -- --help >"$work/help"
  sed 's/\\-/-/g' "$page" | flags | grep -vx -- --help >"$work/page"
  check "$name has the flags of --help, and no others" diff "$work/help" "$work/page"
  check "$name names no folder of this machine" refused grep -F "$work" "$page"
done
check "there are commands" [ "$(wc -l <"$work/commands")" -gt 30 ]
while read -r command; do check "$command has a page" [ -s "$work/man/berth-$command.1" ]; done <"$work/commands"
for page in berth-adm-taint berth-adm-policy-add-role-to-user berth-token-create berth-snapshot-save berth-node-join; do check "$page is there" [ -s "$work/man/$page.1" ]; done
if command -v man >/dev/null && command -v groff >/dev/null; then
  check "man takes all of them without a warning" sh -c "for page in '$work'/man/*.1; do LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings -l -Tutf8 \$page 2>&1 >/dev/null; done | grep -v 'break line' && exit 1 || exit 0"
fi
finish
