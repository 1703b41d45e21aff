#!/bin/sh
# The pictures of the README, made by the program itself: a run on an embedded fleet of 240 nodes with a rack that fails, as the
# live display showed it at its busiest, and the page that `rollout report` makes of it. Takes some minutes; needs no root.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$here/.rollout/picture
limit='tess-node-[0001-0240]'

if [ -d "$work/.rollout/lab" ]; then (cd "$work" && rollout lab down >/dev/null 2>&1) || :; fi
rm -rf "$work" && mkdir -p "$work/playbooks" && cd "$work"
ln -s "$here/inventories" "$here/templates" .
sed -e 's/^soak: 60s/soak: 6s/' -e 's/^  perRack: 5%/  perRack: 20%/' -e 's/^  wave: 2%/  wave: 3/' -e 's/^  fleet: 1%/  fleet: 2%/' \
	"$here/playbooks/image-pulls.yaml" > playbooks/image-pulls.yaml
trap 'rollout lab down >/dev/null 2>&1 || :' EXIT
rollout lab up --cluster rno --limit "$limit" --restart-sec 2
rollout lab fault 'tess-node-[0195-0240]' never-healthy | tail -1
rollout apply --cluster rno --limit "$limit" --yes --ssh-config .rollout/lab/ssh_config --reason "image pulls time out" || code=$?
[ "${code:-0}" = 3 ] || { echo "the run should have halted (3)" >&2; exit 1; }
rollout report --html "$work/report.html"
python3 "$here/docs/pictures/draw.py" "$work/.rollout" "$here/docs/pictures/run.svg"
