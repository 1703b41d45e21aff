#!/bin/sh
# bastion.sh TOOLS OUT PAGE - the first hour with one's own fleet: from an empty Debian with Python, an SSH key and an Ansible
# inventory to the first plan of 300 nodes behind a bastion, then to an applied canary. The commands are those of
# docs/project.md between its marks `own-fleet`. PAGE is the transcript.
#
# Three network namespaces: the person, the bastion, the fleet; the person has no route to the fleet. Real: OpenSSH (an sshd
# for the bastion and one for each of the 300 addresses, each with its own host key), ansible-core, Debian, pipx. A lab serves
# what is behind each node's sshd: the real agent in a real shell, with stand-ins for systemd, sudo and the kubelet.
set -eu
tools=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
page=$3
most_commands=8 most_seconds=1200 rooms="fh-person fh-bastion fh-fleet"
# shellcheck source=tests/first_hour/roots.sh
. "$(dirname "$0")/roots.sh"

cleanup() {
	for room in $rooms; do
		ip netns pids "$room" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
		ip netns delete "$room" 2>/dev/null || true
	done
	remove_mounts root servers
}
trap cleanup EXIT
cleanup
rm -rf "$out/fleet"
mkdir -p "$out/fleet"

joined() { # ROOM ADDRESS ROOM ADDRESS: a cable between two namespaces
	ip link add "$1" netns "$3" type veth peer name "$3" netns "$1"
	ip -n "$3" address add "$4/30" dev "$1"
	ip -n "$1" address add "$2/30" dev "$3"
	ip -n "$3" link set "$1" up
	ip -n "$1" link set "$3" up
}
for room in $rooms; do
	ip netns add "$room"
	ip -n "$room" link set lo up
done
joined fh-person 10.90.0.1 fh-bastion 10.90.0.2
joined fh-bastion 10.90.0.5 fh-fleet 10.90.0.6
ip -n fh-bastion route add 10.91.0.0/16 via 10.90.0.6
ip -n fh-fleet route add local 10.91.0.0/16 dev lo

ip netns exec fh-fleet .venv/bin/python -m tests.first_hour.fleet "$out/fleet"

fresh_root root pipx,python3-venv,openssh-client
checkout_and_index root ansible-core
fresh_root servers openssh-server,openssh-client
mkdir -m 700 "$out/root/root/.ssh"
ssh-keygen -q -t ed25519 -N '' -C person -f "$out/root/root/.ssh/id_ed25519"
mkdir "$out/root/root/kubespray" "$out/root/root/kubespray/inventory"
cp -r "$out/fleet/inventory" "$out/root/root/kubespray/inventory/prod"

server=$out/servers
mkdir -p "$server/run/sshd" "$server/lab" "$server/etc/ssh/hosts"
for user in jump ops; do
	chroot "$server" useradd --create-home --shell /bin/sh --password '*' "$user"
	install -d -m 700 "$server/home/$user/.ssh"
	cp "$out/root/root/.ssh/id_ed25519.pub" "$server/home/$user/.ssh/authorized_keys"
	chroot "$server" chown -R "$user:" "/home/$user/.ssh"
done
# The lab's side of each node's sshd: its ssh_config, and its key for the user that OpenSSH has logged in.
cp "$out/fleet/lab/ssh_config" "$out/fleet/lab/known_hosts" "$out/fleet/lab/id_ed25519" "$server/home/ops/"
sed -i "s#$out/fleet/lab/#/home/ops/#g" "$server/home/ops/ssh_config"
chroot "$server" chown -R ops: /home/ops
cat >"$server/usr/bin/enter" <<'END'
#!/bin/sh
# shellcheck disable=SC2086 # four words
set -- $SSH_CONNECTION
exec ssh -q -F /home/ops/ssh_config "$3" "${SSH_ORIGINAL_COMMAND:?only commands are run here}"
END
chmod 755 "$server/usr/bin/enter"
common='-o UsePAM=no -o PasswordAuthentication=no -o PidFile=none -o LogLevel=ERROR'
chroot "$server" ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/hosts/bastion
# shellcheck disable=SC2086
ip netns exec fh-bastion chroot "$server" /usr/sbin/sshd -h /etc/ssh/hosts/bastion -o ListenAddress=10.90.0.2 -o AllowUsers=jump -o MaxStartups=200 $common
while read -r address; do
	ssh-keygen -q -t ed25519 -N '' -f "$server/etc/ssh/hosts/$address"
	# shellcheck disable=SC2086
	ip netns exec fh-fleet chroot "$server" /usr/sbin/sshd -h "/etc/ssh/hosts/$address" -o ListenAddress="$address" \
		-o AllowUsers=ops -o ForceCommand=/usr/bin/enter $common
done <"$out/fleet/addresses"

typed docs/project.md own-fleet >"$out/typed.txt"
cp "$out/typed.txt" "$out/root/root/typed.txt"
mkdir "$out/root/root/printed"
cat >"$out/root/root/typed.sh" <<'END'
export PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheelhouse PIP_DISABLE_PIP_VERSION_CHECK=1
cd /root
number=0
while read -r line <&3; do
	number=$((number + 1))
	began=$(date +%s%N)
	status=0
	eval "$line" </dev/null >"/root/printed/$number.txt" 2>&1 || status=$?
	echo "$status $(($(date +%s%N) - began))" >"/root/printed/$number.end"
	echo
	echo "\$ $line"
	cat "/root/printed/$number.txt"
done 3</root/typed.txt
END
ip netns exec fh-person unshare --fork --pid --kill-child --mount --mount-proc="$out/root/proc" chroot "$out/root" env -i HOME=/root \
	PATH=/root/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb sh /root/typed.sh
.venv/bin/python -m tests.first_hour.transcript "$out/root/root" "$page" "$most_commands" "$most_seconds"
