# An image of this machine's static busybox that can look names up, for machines without a registry. Sourced: shop_image DIRECTORY SOCKET
# shellcheck shell=bash
shop_image() {
  local work=$1 socket=$2 root=$1/shop-root library
  mkdir -p "$root"/{bin,tmp,www,data}
  cp "$(command -v busybox)" "$root/bin/busybox"
  for applet in sh sleep echo cat date touch true false hostname ls mkdir rm nc nslookup printf tail head wc httpd grep env id; do ln -sf busybox "$root/bin/$applet"; done
  # A static program finds no names by glibc; getent does, with libraries of its own, which the static one must not find.
  mkdir -p "$root/names"
  cp -L "$(command -v getent)" $(ldd "$(command -v getent)" | grep -o '/[^ ]*') "$root/names/"
  printf '#!/bin/sh\nexec /names/ld-linux* --library-path /names /names/getent "$@"\n' >"$root/bin/getent"
  cat >"$root/bin/wget" <<'X'
#!/bin/sh
# wget [-q] [-T SECONDS] [-O -|FILE] [--post-data=TEXT] http://HOST[:PORT]/PATH
wait=5 file=- method=GET
while [ $# -gt 1 ]; do
  case $1 in
    -T) wait=$2; shift ;;
    -O) file=$2; shift ;;
    --post-data=*) method=POST ;;
  esac
  shift
done
rest=${1#http://}; where=${rest%%/*}; path=/${rest#*/}
[ "$rest" = "$where" ] && path=/
port=${where#*:}; [ "$port" = "$where" ] && port=80
address=$(getent ahostsv4 "${where%%:*}" | head -n 1); address=${address%% *}
[ -n "$address" ] || { echo "wget: bad address '${where%%:*}'" >&2; exit 1; }
printf '%s %s HTTP/1.0\r\nHost: %s\r\nContent-Length: 0\r\n\r\n' "$method" "$path" "$where" | nc -w "$wait" "$address" "$port" >/tmp/answer.$$
read -r answer </tmp/answer.$$
case $answer in
  *" 200 "*) ;;
  *) rm -f /tmp/answer.$$; echo "wget: no answer from $where: $answer" >&2; exit 1 ;;
esac
body() { while read -r line; do [ "$line" = "$(printf '\r')" ] && break; done; cat; }
if [ "$file" = - ]; then body </tmp/answer.$$; else body </tmp/answer.$$ >"$file"; fi
rm -f /tmp/answer.$$
X
  chmod 755 "$root/bin/wget" "$root/bin/getent"
  (cd "$work" && umoci init --layout shop && umoci new --image shop:1.37 && umoci insert --image shop:1.37 "$root" / &&
    umoci config --image shop:1.37 --config.env PATH=/bin --config.cmd sh && tar -C shop -cf shop.tar .) >/dev/null 2>&1 &&
    ctr -a "$socket" -n k8s.io images import --base-name docker.io/library/busybox "$work/shop.tar" >/dev/null
}
