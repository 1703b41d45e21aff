#!/bin/bash
# The main job on an embedded fleet: plan, staged apply into a rack that fails, halt, reverts, emergency rollback, proof.
# Everything lives in WORK (.rollout/demo); the commands are the ones that anybody would type. Needs no root. It measures itself and
# fails above LIMIT_SECONDS, LIMIT_FLEET or LIMIT_CONTROLLER (MiB). With ENGINE=dask, a scheduler and workers of two regions on
# loopback carry the verbs, and the fleet has 60 more nodes: rack13, in another zone.
# ONLY=… is another choice of NODES nodes than the first ones; rack04 must be among them.
set -euo pipefail
NODES=${NODES:-240}
LIMIT_SECONDS=${LIMIT_SECONDS:-900} LIMIT_FLEET=${LIMIT_FLEET:-1024} LIMIT_CONTROLLER=${LIMIT_CONTROLLER:-300}
here=$(cd "$(dirname "$0")/.." && pwd)
work=${WORK:-$here/.rollout/demo}
limit=${ONLY:-"tess-node-[0001-$(printf %04d "$NODES")]"}
ENGINE=${ENGINE:-embedded}
[ "$ENGINE" != dask ] || [ "$NODES" -gt 720 ] || { limit="$limit,@rack13" NODES=$((NODES + 60)); }

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# A process of Dask, NAME WORDS…: the leader of a group that `end` kills. It also ends if this script is killed.
begin() {
	ROLLOUT_SSH_CONFIG=$work/.rollout/lab/ssh_config setsid setpriv --pdeathsig KILL dask "${@:2}" --no-dashboard > "$1.log" 2>&1 &
	engine+=($!)
	disown # its end is no message on the screen
}
alive() {
	for each in "${engine[@]}"; do kill -0 "$each" 2>/dev/null || die "a process of Dask ended: $(tail -qn 1 ./*.log)"; done
}

# Every node as it is but for our own state and what a running kernel makes: kinds, modes, owners; and digests.
everything() { (cd "$work/.rollout/lab/nodes" && find . \( -path './*/proc' -o -path './*/sys' -o -path './*/run' -o -path '*/var/lib/rollout' \) -prune -o -printf '%y %m %U:%G %p\n' | sort); }
digests() { (cd "$work/.rollout/lab/nodes" && find . \( -path './*/proc' -o -path './*/sys' -o -path './*/run' -o -path '*/var/lib/rollout' \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum); }

# Once a second, each process's share of memory (PSS), until we are gone: the fleet with all that runs on its nodes, and the largest
# controller. The peaks are in the file, in MiB.
measure() {
	exec python3 - "$$" "$work" <<'PY'
import json, os, sys, time
demo, work = int(sys.argv[1]), sys.argv[2]
peaks = {"fleet": 0.0, "processes": 0, "controller": 0.0}
def share(pid):
    try:
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
def processes():
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found[int(name)] = int(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    return found
def under(top, parents):
    found, old = {top}, 0
    while len(found) != old:
        old = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found & parents.keys()
def fleet():
    try:
        return json.load(open(f"{work}/.rollout/lab/lab.json"))["pid"]
    except (OSError, ValueError):
        return 0
def words(pid):
    try:
        return open(f"/proc/{pid}/cmdline").read().split("\0")
    except OSError:
        return []
while os.path.exists(f"/proc/{demo}"):
    began, parents, lab = time.monotonic(), processes(), fleet()
    mine = under(lab, parents) if lab else set()
    shares = [share(pid) for pid in mine]
    if sum(shares) > peaks["fleet"]:
        peaks["fleet"], peaks["processes"] = sum(shares), len(shares)
    for pid in under(demo, parents) - mine - {os.getpid()}:
        if any(word.endswith("/rollout") for word in words(pid)[:3]):
            peaks["controller"] = max(peaks["controller"], share(pid))
    json.dump(peaks, open(f"{work}/peaks.new", "w"))
    os.replace(f"{work}/peaks.new", f"{work}/peaks.json")
    time.sleep(max(1.0, 4 * (time.monotonic() - began)))
PY
}

[[ "$ENGINE" = embedded || "$ENGINE" = dask ]] || die "ENGINE is embedded or dask, not $ENGINE"
[ -n "${ONLY-}" ] || [ "$NODES" -ge 190 ] || die "the failing rack is rack04: at least 190 nodes, please (NODES=$NODES)"
if [ -d "$work/.rollout/lab" ]; then (cd "$work" && rollout lab down >/dev/null 2>&1) || :; fi
rm -rf "$work" && mkdir -p "$work/playbooks" && cd "$work"
ln -s "$here/inventories" "$here/templates" .
cp "$here"/playbooks/*.yaml playbooks/
# The shipped playbook, hurried: a short soak, and a fifth of a rack at once instead of 5 %.
sed -e 's/^soak: 60s/soak: 6s/' -e 's/^  perRack: 5%/  perRack: 20%/' "$here/playbooks/image-pulls.yaml" > playbooks/image-pulls.yaml
# With a thousand nodes and more one is to die on the way: a wave of 34 bears that only with a budget of more than its 2 %.
[ "$NODES" -lt 1000 ] || sed -i 's/^  wave: 2%/  wave: 3/' playbooks/image-pulls.yaml
engine=()
end() {
	pkill -KILL -P "$$" || : # also a command that a signal to this script alone left behind
	for each in "${engine[@]}"; do kill -9 -- "-$each" "$each" 2>/dev/null || :; done
	rollout lab down >/dev/null 2>&1 || :
}
trap end EXIT
began=$SECONDS
measure >/dev/null &
disown

say "an embedded fleet: $NODES nodes of cluster rno over real SSH, the real agent on each"
run rollout check
run rollout lab up --cluster rno --limit "$limit" --restart-sec 2
ssh="--ssh-config .rollout/lab/ssh_config"
if [ "$ENGINE" = dask ]; then
	say "a scheduler, and a worker for each of two regions"
	export DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0 DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING=False
	export DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False
	export DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL=1s DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL=10s
	begin scheduler scheduler --host 127.0.0.1 --port 0 --scheduler-file scheduler.json
	until grep -qs '}$' scheduler.json; do alive; sleep 0.2; done
	scheduler=$(python3 -c 'import json; print(json.load(open("scheduler.json"))["address"])')
	for name in rno-a-1 rno-1; do # of the zone rno-a, and of all other zones of rno
		begin "$name" worker "$scheduler" --name "$name" --host 127.0.0.1 --no-nanny --nworkers 1 --memory-limit 0 \
			--death-timeout 30 --local-directory "$work"
	done
	workers="--engine dask --scheduler $scheduler" tries=0
	ssh="$ssh $workers"
	# shellcheck disable=SC2086 # words
	until rollout regions workers $workers > workers.txt && [ "$(grep -c 'ready$' workers.txt)" = 2 ]; do
		alive
		[ $((tries += 1)) -lt 300 ] || die "the workers are not ready after 300 looks"
		sleep 0.2
	done
	cat workers.txt
fi
everything > before.tree; digests > before.sha256

away=
if [ "$NODES" -ge 1000 ]; then
	say "two nodes are away when the plan is made"
	away=tess-node-0705,tess-node-0905
	run rollout lab fault "$away" refuse
fi

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

if [ -n "$away" ]; then
	say "one node will lose power in the middle of its apply and come back, and one has begun to say things without end"
	dies=$(python3 - <<'PY'
import json
plan = json.load(open("rno.plan.json"))
print(next(n["name"] for n in plan["nodes"].values() if n["wave"] == 1 and n["rack"] != "rack04"))
PY
	)
	boot=$(cat ".rollout/lab/nodes/$dies/proc/sys/kernel/random/boot_id")
	run rollout lab fault "$dies" dies-and-returns --at receipt --for 5
	run rollout lab fault tess-node-1905 endless-output
	run rollout lab faults | grep -v never-healthy
fi

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

if [ -n "$away" ]; then
	[ "$(cat ".rollout/lab/nodes/$dies/proc/sys/kernel/random/boot_id")" != "$boot" ] || die "$dies never lost its power"
	grep -qs '^state=confirmed' .rollout/lab/nodes/"$dies"/var/lib/rollout/tx/*/receipt || die "$dies should be done"
	echo "$dies lost its power in its apply, came back, and was done then"
	for node in ${away//,/ } tess-node-1905; do
		! compgen -G ".rollout/lab/nodes/$node/var/lib/rollout/tx/*" >/dev/null || die "$node should not have been touched"
	done
	python3 - "$away" <<'PY' || die "the plan or the run lost a node"
import json, sys
left = {entry["name"]: entry["reference"] for entry in json.load(open("rno.plan.json"))["left"]}
assert all(left.get(name) == "connection-refused" for name in sys.argv[1].split(",")), left
said = {entry["nodes"]: entry["reference"] for entry in json.load(open("status.json"))["troubles"]}
assert said.get("tess-node-1905") == "bad-answer", said
PY
	echo "$away were left out of the plan and said so; tess-node-1905 was cut off, charged and not touched"
	rollout lab fault "$away,tess-node-1905" --clear
fi

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
print(f"  halted: {run['halt']['message']} [{run['halt']['reference']}]")
print(f"  rack04 lost {sys.argv[1]} nodes to its fault (budget 2); reverts by the run itself: {run['counts'].get('reverted', 0)}")
PY
echo "  emergency rollback: $(grep -c . receipts) confirmed nodes reverted, every file as before"
seconds=$((SECONDS - began))
python3 - "$seconds" "$LIMIT_SECONDS" "$LIMIT_FLEET" "$LIMIT_CONTROLLER" <<'PY' || die "more than its limits"
import json, sys
seconds, *limits = map(int, sys.argv[1:])
peaks = json.load(open("peaks.json"))
print(f"  {seconds // 60} min {seconds % 60} s (limit {limits[0]} s); peak memory: fleet {peaks['fleet']:.0f} MiB in {peaks['processes']} processes"
      f" (limit {limits[1]}), largest controller {peaks['controller']:.0f} MiB (limit {limits[2]})")
sys.exit(not (seconds <= limits[0] and 0 < peaks["fleet"] <= limits[1] and 0 < peaks["controller"] <= limits[2]))
PY
echo "demo passed"
