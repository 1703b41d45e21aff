show_kubeadm() { # when kubeadm last rewrote the kubelet's file: it keeps a copy of the previous one
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

show_cgroup() { # 1.35 refuses v1 by default
  [ -d "$R/sys/fs/cgroup" ] || return 0
  if [ -e "$R/sys/fs/cgroup/cgroup.controllers" ]; then say "fact cgroup v2"; else say "fact cgroup v1"; fi
}

marks() { # NAME PATH-OR-UNIT…: marks of another manager of this node. Costs no process
  name=$1 found=''
  shift
  for mark in "$@"; do
    case $mark in
      /*) [ ! -e "$R$mark" ] || found="$found $mark" ;;
      *) mark_unit "$mark" ;;
    esac
  done
  case $scheduled in *" $name "*) found="$found cron" ;; esac
  [ -z "$found" ] || say "fact manager-$name${found}"
}

mark_unit() { # NAME, with :enabled and :active where it is so
  for folder in $UNIT_FOLDERS; do
    [ -e "$folder/$1" ] || continue
    found="$found $1"
    for link in $wants; do case $link in */"$1") found="$found:enabled" && break ;; esac done
    [ ! -L "$R/run/systemd/units/invocation:$1" ] || found="$found:active"
    return
  done
}

find_schedules() { # managers that cron runs, into `scheduled`; what systemd starts by itself, into `wants`
  set +f
  set -- "$R"/etc/systemd/system/*.wants/* "$R"/usr/lib/systemd/system/*.wants/*
  wants=$*
  set -- "$R"/etc/crontab "$R"/etc/cron.*/* "$R"/var/spool/cron/* "$R"/var/spool/cron/crontabs/*
  set -f
  for path in "$@"; do
    shift
    [ ! -f "$path" ] || set -- "$@" "$path"
  done
  scheduled=' '
  [ "$#" -gt 0 ] || return 0
  lines=$(grep -h -o -s -e '^[^#]*ansible-pull' -e '^[^#]*puppet  *agent' -e '^[^#]*chef-client' -e '^[^#]*cinc-client' \
    -e '^[^#]*salt-call' -- "$@" 2>/dev/null)
  case $lines in *ansible-pull*) scheduled="$scheduled ansible-pull " ;; esac
  case $lines in *puppet*agent*) scheduled="$scheduled puppet " ;; esac
  case $lines in *chef-client* | *cinc-client*) scheduled="$scheduled chef " ;; esac
  case $lines in *salt-call*) scheduled="$scheduled salt " ;; esac
}

show_managers() { # what else configures this node, or owns its kubelet
  system=''
  while IFS='=' read -r key value; do
    case $key in ID) system=${value#\"} system=${system%\"} ;; esac
  done 2>/dev/null <"$R/etc/os-release"
  case $system in '' | *[!a-z0-9._-]*) ;; *) say "fact os $system" ;; esac
  find_schedules
  marks puppet puppet.service pe-puppet.service /etc/puppetlabs/puppet/puppet.conf /etc/puppet/puppet.conf \
    /opt/puppetlabs/puppet/cache/state/agent_disabled.lock /opt/puppetlabs/puppet/cache/state/agent_catalog_run.lock
  marks chef chef-client.service chef-client.timer cinc-client.service cinc-client.timer /etc/chef/client.rb /etc/cinc/client.rb
  marks ansible-pull ansible-pull.service ansible-pull.timer
  marks salt salt-minion.service /etc/salt/minion
  marks cfengine cfengine3.service cf-execd.service
  marks mco machine-config-daemon.service machine-config-daemon-pull.service machine-config-daemon-firstboot.service \
    /etc/machine-config-daemon/currentconfig
  for path in /run/reboot-required /var/run/reboot-required; do
    [ ! -e "$R$path" ] || { say "fact reboot-pending $path" && break; }
  done
}

show_hard_links() { # of the files just shown: other names of the same file. A change replaces the file, so that these keep the old bytes
  linked=''
  IFS=$NL
  # shellcheck disable=SC2086 # a list of paths
  for line in $(unset IFS && stat -c '%h %n' -- $present 2>/dev/null); do
    case $line in 1\ *) ;; *) linked="$linked ${line#* "$R"}" ;; esac
  done
  unset IFS
  [ -z "$linked" ] || say "fact hard-links${linked}"
}
