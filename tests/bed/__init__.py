"""Real systemd nodes on one machine: containers with systemd as PID 1, sshd, sudo and a stand-in kubelet."""
