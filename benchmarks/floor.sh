# shellcheck shell=sh
# A guarded change of the kubelet's two files, without protocol. VALUE is set before: true or false. Cheap nodes set ROLLOUT_ROOT.
set -e
looks=0
root=${ROLLOUT_ROOT-}
state=$root/var/lib/floor units=$root/etc/systemd/system
mkdir -p "$state" && cd "$state"
config=$root/var/lib/kubelet/config.yaml
[ -e "$config" ] || config=$root/etc/kubernetes/kubelet-config.yaml
flags=$root/etc/default/kubelet
cp -p "$config" old.1
if [ -e "$flags" ]; then cp -p "$flags" old.2; else : > old.2; fi
sed "s/serializeImagePulls: .*/serializeImagePulls: $VALUE/" "$config" > "$config.new"
echo 'KUBELET_EXTRA_ARGS="--image-pull-progress-deadline=5m"' > "$flags.new"
echo state=armed > receipt.new
sync old.1 old.2 "$config.new" "$flags.new" receipt.new
mv receipt.new receipt
sync .
cat > "$units/floor-guard.service" <<'UNIT'
[Unit]
DefaultDependencies=no
Before=kubelet.service
[Service]
Type=oneshot
ExecStart=/bin/true
[Install]
WantedBy=multi-user.target
UNIT
mkdir -p "$units/multi-user.target.wants"
ln -sf ../floor-guard.service "$units/multi-user.target.wants/floor-guard.service"
sync "$units" "$units/multi-user.target.wants"
systemctl daemon-reload
systemd-run -q --unit=floor-timer --on-active=120 --timer-property=AccuracySec=100ms /bin/true
cat > try <<'TRY'
cd ${0%/*}
case $(systemctl show -p ActiveState floor-timer.timer) in *ActiveState=active*) ;; *) exit 1 ;; esac
ln old.1 $1.try && mv -f $1.try $1.tried && ln old.2 $2.try && mv -f $2.try $2.tried && rm -f $1.tried $2.tried || exit 1
mkdir ${1%/*}/.floor.try ${2%/*}/.floor.try && rmdir ${1%/*}/.floor.try ${2%/*}/.floor.try || exit 1
echo complete > tried.new && mv -f tried.new tried && sync tried .
TRY
systemd-run -q --unit=floor-watch --collect --property=ExecStartPre="/bin/sh $state/try $config $flags" sleep 130
[ -z "$root" ] || sh "$state/try" "$config" "$flags" # the stand-in of systemd-run runs nothing of it
read -r outcome < tried && [ "$outcome" = complete ]
rm try tried
systemctl show -p ActiveState floor-timer.timer floor-watch.service > /dev/null
mv "$config.new" "$config"
mv "$flags.new" "$flags"
sync "${config%/*}" "${flags%/*}"
systemctl restart kubelet
sleep 1.4
systemctl show -p MainPID,NRestarts,ActiveState kubelet > /dev/null
until curl -fs -m 5 http://127.0.0.1:10248/healthz > /dev/null; do
  [ $((looks += 1)) -lt 100 ]
  sleep 0.2
done
echo state=confirmed > receipt.new
sync receipt.new
mv receipt.new receipt
sync .
systemctl stop floor-timer.timer floor-watch.service
rm -f "$units/floor-guard.service" "$units/multi-user.target.wants/floor-guard.service"
echo ok
