#!/bin/sh
# first-hour.sh TOOLS OUT - from an empty Debian with Python to a finished rollout on the lab: the commands are those of
# the README between its marks `first-hour`, typed in a root file system that has a checkout in ~/rollout and no network.
# Then a wheel of the same checkout is installed by uv.
set -eu
tools=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
most_commands=6 most_seconds=300
# shellcheck source=tests/first_hour/roots.sh
. "$(dirname "$0")/roots.sh"
trap 'remove_mounts root' EXIT
remove_mounts root

fresh_root root pipx,python3-venv
checkout_and_index root
mkdir -p "$out/root/root/first"

typed README.md first-hour >"$out/typed.txt"
commands=$(wc -l <"$out/typed.txt")
for word in 'pipx install' init doctor plan apply report; do
	grep -q -w -- "$word" "$out/typed.txt" || { echo "the README types no $word" >&2; exit 1; }
done

{
	echo 'set -eu'
	echo 'export PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheelhouse PIP_DISABLE_PIP_VERSION_CHECK=1'
	echo 'cd /root/first'
	while read -r line; do printf 'echo\necho %s\n%s\n' "'\$ $(printf %s "$line" | sed "s/'/'\\\\''/g")'" "$line"; done <"$out/typed.txt"
} >"$out/root/root/typed.sh"

# shellcheck disable=SC2016 # expanded by the shell inside
inside() { # COMMAND...: in the root, without a network
	unshare --fork --pid --kill-child --net --mount --mount-proc="$out/root/proc" sh -c '
		root=$1
		shift
		ip link set lo up 2>/dev/null || true
		exec chroot "$root" env -i HOME=/root PATH=/root/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb "$@"' sh "$out/root" "$@"
}

began=$(date +%s)
inside sh /root/typed.sh
seconds=$(($(date +%s) - began))
echo
echo "from an empty Debian to a finished rollout: $commands commands of the README, the installation included, in $seconds s"
[ "$commands" -le "$most_commands" ] || { echo "more than $most_commands commands" >&2; exit 1; }
[ "$seconds" -lt "$most_seconds" ] || { echo "not under $most_seconds s" >&2; exit 1; }

cp "$tools/uv" "$out/root/usr/bin/uv"
inside env HOME=/root/by-uv UV_OFFLINE=1 UV_FIND_LINKS=/wheelhouse UV_PYTHON_DOWNLOADS=never uv tool install --quiet kubelet-rollout
inside env HOME=/root/by-uv /root/by-uv/.local/bin/rollout --version
echo "uv tool install: the same wheel runs"
