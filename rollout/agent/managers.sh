managers_show_kubeadm() { # when kubeadm last rewrote the kubelet's file: it keeps a copy of the previous one
  local path newest
  newest=''
  set +f
  for path in "$R"/etc/kubernetes/tmp/kubeadm-kubelet-config*/config.yaml; do
    [ -f "$path" ] || continue
    # shellcheck disable=SC3013 # dash, bash and busybox have -nt
    if [ -z "$newest" ] || [ "$path" -nt "$newest" ]; then newest=$path; fi
  done
  set -f
  [ -z "$newest" ] || say "fact kubeadm-upgraded $(stat -c %Y -- "$newest") ${newest#"$R"}"
}

managers_show_cgroup() { # 1.35 refuses v1 by default
  [ -d "$R/sys/fs/cgroup" ] || return 0
  if [ -e "$R/sys/fs/cgroup/cgroup.controllers" ]; then say "fact cgroup v2"; else say "fact cgroup v1"; fi
}

managers_marks() { # NAME PATH-OR-UNIT…: marks of another manager of this node. Costs no process
  local name a_found mark
  name=$1 a_found=''
  shift
  for mark in "$@"; do
    case $mark in
      /*) [ ! -e "$R$mark" ] || a_found="$a_found $mark" ;;
      *) managers_mark_unit "$mark" ;;
    esac
  done
  case $a_scheduled in *" $name "*) a_found="$a_found cron" ;; esac
  [ -z "$a_found" ] || say "fact manager-$name${a_found}"
}

managers_mark_unit() { # NAME, with :enabled and :active where it is so
  local folder link
  for folder in $UNIT_FOLDERS; do
    [ -e "$folder/$1" ] || continue
    a_found="$a_found $1"
    for link in $a_wants; do case $link in */"$1") a_found="$a_found:enabled" && break ;; esac done
    [ ! -L "$R/run/systemd/units/invocation:$1" ] || a_found="$a_found:active"
    return
  done
}

managers_find_schedules() { # managers that cron runs, into `a_scheduled`; what systemd starts by itself, into `a_wants`
  local path lines
  set +f
  set -- "$R"/etc/systemd/system/*.wants/* "$R"/usr/lib/systemd/system/*.wants/*
  a_wants=$*
  set -- "$R"/etc/crontab "$R"/etc/cron.*/* "$R"/var/spool/cron/* "$R"/var/spool/cron/crontabs/*
  set -f
  for path in "$@"; do
    shift
    [ ! -f "$path" ] || set -- "$@" "$path"
  done
  a_scheduled=' '
  [ "$#" -gt 0 ] || return 0
  lines=$(grep -h -o -s -e '^[^#]*ansible-pull' -e '^[^#]*puppet  *agent' -e '^[^#]*chef-client' -e '^[^#]*cinc-client' \
    -e '^[^#]*salt-call' -- "$@" 2>/dev/null)
  case $lines in *ansible-pull*) a_scheduled="$a_scheduled ansible-pull " ;; esac
  case $lines in *puppet*agent*) a_scheduled="$a_scheduled puppet " ;; esac
  case $lines in *chef-client* | *cinc-client*) a_scheduled="$a_scheduled chef " ;; esac
  case $lines in *salt-call*) a_scheduled="$a_scheduled salt " ;; esac
}

managers_show_managers() { # what else configures this node, or owns its kubelet
  local system key value path
  system=''
  while IFS='=' read -r key value; do
    case $key in ID) system=${value#\"} system=${system%\"} ;; esac
  done 2>/dev/null <"$R/etc/os-release"
  case $system in '' | *[!a-z0-9._-]*) ;; *) say "fact os $system" ;; esac
  managers_find_schedules
  managers_marks puppet puppet.service pe-puppet.service /etc/puppetlabs/puppet/puppet.conf /etc/puppet/puppet.conf \
    /opt/puppetlabs/puppet/cache/state/agent_disabled.lock /opt/puppetlabs/puppet/cache/state/agent_catalog_run.lock
  managers_marks chef chef-client.service chef-client.timer cinc-client.service cinc-client.timer /etc/chef/client.rb /etc/cinc/client.rb
  managers_marks ansible-pull ansible-pull.service ansible-pull.timer
  managers_marks salt salt-minion.service /etc/salt/minion
  managers_marks cfengine cfengine3.service cf-execd.service
  managers_marks mco machine-config-daemon.service machine-config-daemon-pull.service machine-config-daemon-firstboot.service \
    /etc/machine-config-daemon/currentconfig
  managers_marks nodeadm nodeadm-run.service nodeadm-config.service
  managers_marks kops kops-configuration.service
  managers_marks kubespray /etc/kubernetes/kubelet.env
  managers_marks cos kube-node-configuration.service
  managers_marks rke2 rke2-server.service rke2-agent.service
  managers_marks k3s k3s.service k3s-agent.service
  managers_marks rancher rancher-system-agent.service
  for path in /run/reboot-required /var/run/reboot-required; do
    [ ! -e "$R$path" ] || { say "fact reboot-pending $path" && break; }
  done
}

managers_show_hard_links() { # of the files just shown: other names of the same file. A change replaces the file, so that these keep the old bytes
  [ -z "$x_linked" ] || say "fact hard-links${x_linked}"
}
