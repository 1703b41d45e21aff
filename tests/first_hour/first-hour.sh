#!/bin/sh
# first-hour.sh TOOLS OUT - from an empty Debian with Python to a finished rollout on the lab: the commands are those of
# the README between its marks `first-hour`, typed in a root file system that has a checkout in ~/rollout and no network.
# Then a wheel of the same checkout is installed by uv.
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
# What an index would serve to the root: the packages that it needs to build and to run, for Debian's Python.
"$tools/pip" download --quiet --disable-pip-version-check --dest "$out/wheels" "$out"/dist/*.whl pip setuptools wheel -r requirements/build.in
rm -rf "$out/root"
mkdir "$out/root"
tar -x --numeric-owner -f "$out/root.tar" -C "$out/root" --exclude='./dev/*'
mkdir -p "$out/root/wheelhouse" "$out/root/root/first" "$out/root/root/rollout"
git archive HEAD | tar -x -C "$out/root/root/rollout"
mount --rbind --make-rslave /dev "$out/root/dev"
mount --bind -o ro "$out/wheels" "$out/root/wheelhouse"
mount -t proc proc "$out/root/proc"

sed -n '/^<!-- first-hour begins -->/,/^<!-- first-hour ends -->/s/^\(\$ \|    \)//p' README.md >"$out/typed.txt"
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
