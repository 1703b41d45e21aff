#!/bin/bash
# The main job on an embedded fleet: plan, staged apply into a rack that fails, halt, reverts, emergency rollback, proof.
# Everything lives in .rollout/demo; the commands are the ones that anybody would type. Needs no root.
set -euo pipefail
NODES=${NODES:-240}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$here/.rollout/demo
limit="tess-node-[0001-$(printf %04d "$NODES")]"

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# Every node as it is but for our own state and what a running kernel makes: kinds, modes, owners; and digests.
everything() { (cd "$work/.rollout/lab/nodes" && find . \( -path './*/proc' -o -path './*/run' -o -path '*/var/lib/rollout' \) -prune -o -printf '%y %m %U:%G %p\n' | sort); }
digests() { (cd "$work/.rollout/lab/nodes" && find . \( -path './*/proc' -o -path './*/run' -o -path '*/var/lib/rollout' \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum); }

[ "$NODES" -ge 190 ] || die "the failing rack is rack04: at least 190 nodes, please (NODES=$NODES)"
if [ -d "$work/.rollout/lab" ]; then (cd "$work" && rollout lab down >/dev/null 2>&1) || :; fi
rm -rf "$work" && mkdir -p "$work/playbooks" && cd "$work"
ln -s "$here/inventories" "$here/templates" .
# The shipped playbook, hurried: a short soak, and a fifth of a rack at once instead of 5 %.
sed -e 's/^soak: 60s/soak: 6s/' -e 's/^  perRack: 5%/  perRack: 20%/' "$here/playbooks/image-pulls.yaml" > playbooks/image-pulls.yaml
trap 'rollout lab down >/dev/null 2>&1 || :' EXIT

say "an embedded fleet: $NODES nodes of cluster rno over real SSH, the real agent on each"
run rollout check
run rollout lab up --cluster rno --limit "$limit" --restart-sec 2
ssh="--ssh-config .rollout/lab/ssh_config"
everything > before.tree; digests > before.sha256

say "plan: reads the nodes, changes nothing"
# shellcheck disable=SC2086 # two words
run rollout plan --cluster rno --limit "$limit" $ssh --out rno.plan.json
everything | cmp - before.tree || die "planning changed a node"

say "rack04 has a fault that only shows when its kubelets restart: all its nodes but those of the first two waves"
faulty=$(python3 - <<'PY'
import json
plan = json.load(open("rno.plan.json"))
late = [n["name"] for n in plan["nodes"].values() if n["rack"] == "rack04" and n["wave"] > 1]
print(",".join(late))
PY
)
run rollout lab fault "$faulty" never-healthy | tail -1

say "apply: canary, growing waves, gates"
code=0
# shellcheck disable=SC2086 # two words
run rollout apply rno.plan.json --yes $ssh --reason "image pulls time out" || code=$?
echo "(exit code $code)"
[ "$code" = 3 ] || die "the run should have halted (3)"

say "what the journal says"
run rollout status
rollout status -o json > status.json
touched=0
for node in ${faulty//,/ }; do
	compgen -G ".rollout/lab/nodes/$node/var/lib/rollout/tx/*/receipt" >/dev/null && touched=$((touched + 1))
done
echo "rack04: $touched of its $(tr ',' '\n' <<< "$faulty" | wc -l) faulty nodes were ever touched; the budget of a rack is 2"
[ "$touched" -le 2 ] || die "the failing rack took more nodes than its budget"

say "emergency: every node back to its last good configuration, from what the nodes know alone"
mv .rollout/journal.db* . # our own state is gone; it is not needed
grep -lsr '^state=confirmed' .rollout/lab/nodes/*/var/lib/rollout/tx/*/receipt > receipts || :
code=0
# shellcheck disable=SC2086 # two words
run rollout rollback --cluster rno --emergency --limit "$limit" --yes $ssh || code=$?
echo "(exit code $code)"
[ "$code" = 0 ] || die "the rollback should have ended well (0)"

say "proof: every file of every node against before"
everything > after.tree; digests > after.sha256
cmp before.sha256 after.sha256 || die "a file differs"
left=$(comm -13 <(sort before.tree) <(sort after.tree) | grep -v '/var/lib/rollout$' || :)
[ -z "$left" ] || die "left behind: $left"
echo "$(wc -l < after.sha256) files on $NODES nodes are byte-identical; nothing but /var/lib/rollout remains"

say "summary"
python3 - "$touched" <<'PY'
import json, sys
run = json.load(open("status.json"))
for wave in run["waves"]:
    print(f"  wave {wave['name']:>10}: {wave['total']:4} nodes: " + ", ".join(f"{n} {state}" for state, n in wave["counts"].items()))
print(f"  halted: {run['halt']}")
print(f"  rack04 lost {sys.argv[1]} nodes to its fault (budget 2); reverts by the run itself: {run['counts'].get('reverted', 0)}")
PY
echo "  emergency rollback: $(grep -c . receipts) confirmed nodes taken back, every file as before"
echo "demo passed"
