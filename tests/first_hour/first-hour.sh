#!/bin/sh
# first-hour.sh TOOLS OUT - from an empty Debian with Python to a finished rollout on the lab: the commands are those of
# the page with the marks `first-hour`, typed in a root file system that has neither a checkout nor a network.
set -eu
tools=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
most_commands=6 most_seconds=300
cleanup() {
	for point in dev proc wheelhouse; do mountpoint -q "$out/root/$point" && umount -R -l "$out/root/$point"; done
	return 0
}
trap cleanup EXIT
cleanup

if [ ! -e "$out/root.tar" ]; then
	mmdebstrap --quiet --variant=minbase --include=pipx,python3-venv --aptopt='Apt::Install-Recommends "false"' \
		--dpkgopt=force-unsafe-io bookworm "$out/fresh.tar"
	mv "$out/fresh.tar" "$out/root.tar"
fi
rm -rf "$out/dist" "$out/wheels"
"$tools/python" -m build --wheel --outdir "$out/dist" . >"$out/build.log" 2>&1 || { cat "$out/build.log" >&2; exit 1; }
# What an index would serve to the root: the wheel, and the packages that it needs, for Debian's Python.
"$tools/pip" download --quiet --disable-pip-version-check --dest "$out/wheels" "$out"/dist/*.whl pip setuptools wheel
rm -rf "$out/root"
mkdir "$out/root"
tar -x --numeric-owner -f "$out/root.tar" -C "$out/root" --exclude='./dev/*'
mkdir -p "$out/root/wheelhouse" "$out/root/root/first"
mount --rbind --make-rslave /dev "$out/root/dev"
mount --bind -o ro "$out/wheels" "$out/root/wheelhouse"
mount -t proc proc "$out/root/proc"

page=$(grep -l '^<!-- first-hour begins -->' README.md docs/*.md | head -n 1)
sed -n '/^<!-- first-hour begins -->/,/^<!-- first-hour ends -->/s/^\$ //p' "$page" >"$out/typed.txt"
commands=$(wc -l <"$out/typed.txt")
[ "$commands" -gt 0 ] || { echo "$page has no commands between its marks" >&2; exit 1; }

{
	echo 'set -eu'
	echo 'export PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheelhouse PIP_DISABLE_PIP_VERSION_CHECK=1'
	echo 'cd /root/first'
	{
		echo 'pipx install kubelet-rollout'
		cat "$out/typed.txt"
	} | while read -r line; do printf 'echo\necho %s\n%s\n' "'\$ $(printf %s "$line" | sed "s/'/'\\\\''/g")'" "$line"; done
} >"$out/root/root/typed.sh"

began=$(date +%s)
# shellcheck disable=SC2016 # expanded by the shell inside
unshare --fork --pid --kill-child --net --mount --mount-proc="$out/root/proc" sh -c '
	ip link set lo up 2>/dev/null || true
	exec chroot "$0" env -i HOME=/root PATH=/root/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb sh /root/typed.sh' "$out/root"
seconds=$(($(date +%s) - began))
echo
echo "from an empty Debian to a finished rollout: pipx install, then $commands commands of $page, in $seconds s"
[ "$commands" -le "$most_commands" ] || { echo "more than $most_commands commands" >&2; exit 1; }
[ "$seconds" -lt "$most_seconds" ] || { echo "not under $most_seconds s" >&2; exit 1; }
