crio_note() {
  local n_value
  homes_option ' --config -c '
  homes_note_read crio.service "${n_value:-/etc/crio/crio.conf}"
  homes_option ' --config-dir -d '
  n_value=${n_value:-/etc/crio/crio.conf.d}
  measure_note_path "$n_value" "$n_value/99-rollout.conf"
  homes_note_matching crio-conf "$n_value/*"
  # shellcheck disable=SC2086 # a list of paths
  homes_note_read crio.service $n_matched
}

crio_root() { # of the process `process`, into `data`: by its command line or configuration, or by that of containers/storage; the last one counts
  local n_value n_words
  n_words=''
  ! processes_mentions "$process" root || homes_command_line "$process"
  data=/var/lib/containers/storage
  homes_option ' --root -r '
  if [ -n "$n_value" ]; then data=$n_value && return; fi
  set --
  set +f
  for n_value in "$R"/usr/share/containers/storage.conf "$R"/etc/containers/storage.conf "$R"/etc/crio/crio.conf "$R"/etc/crio/crio.conf.d/*; do
    [ ! -f "$n_value" ] || set -- "$@" "$n_value"
  done
  set -f
  [ "$#" -gt 0 ] || return 0
  n_value=$(sed -n -e 's/^[[:blank:]]*\(graph\)*root[[:blank:]]*=[[:blank:]]*"\([^"]*\)".*/\2/p' -- "$@" 2>/dev/null)
  data=${n_value##*"$NL"}
  data=${data:-/var/lib/containers/storage}
}
