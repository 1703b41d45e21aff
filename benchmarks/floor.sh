# shellcheck shell=sh
# A guarded change of the kubelet's two files, without protocol. VALUE is set before: true or false.
set -e
state=/var/lib/floor units=/etc/systemd/system
mkdir -p $state && cd $state
config=/var/lib/kubelet/config.yaml
[ -e $config ] || config=/etc/kubernetes/kubelet-config.yaml
flags=/etc/default/kubelet
cp -p $config old.1
if [ -e $flags ]; then cp -p $flags old.2; else : > old.2; fi
sed "s/serializeImagePulls: .*/serializeImagePulls: $VALUE/" $config > $config.new
echo 'KUBELET_EXTRA_ARGS="--image-pull-progress-deadline=5m"' > $flags.new
echo state=armed > receipt.new
sync old.1 old.2 $config.new $flags.new receipt.new
mv receipt.new receipt
sync .
cat > $units/floor-guard.service <<'UNIT'
[Unit]
DefaultDependencies=no
Before=kubelet.service
[Service]
Type=oneshot
ExecStart=/bin/true
[Install]
WantedBy=multi-user.target
UNIT
mkdir -p $units/multi-user.target.wants
ln -sf ../floor-guard.service $units/multi-user.target.wants/floor-guard.service
sync $units $units/multi-user.target.wants
systemctl daemon-reload
systemd-run -q --unit=floor-timer --on-active=120 --timer-property=AccuracySec=100ms /bin/true
systemd-run -q --unit=floor-watch --collect sleep 130
systemctl show -p ActiveState floor-timer.timer floor-watch.service > /dev/null
mv $config.new $config
mv $flags.new $flags
sync "$(dirname $config)" /etc/default
systemctl restart kubelet
sleep 1.4
systemctl show -p MainPID,NRestarts,ActiveState kubelet > /dev/null
curl -fsS -m 5 http://127.0.0.1:10248/healthz > /dev/null
echo state=confirmed > receipt.new
sync receipt.new
mv receipt.new receipt
sync .
systemctl stop floor-timer.timer floor-watch.service
rm -f $units/floor-guard.service $units/multi-user.target.wants/floor-guard.service
echo ok
