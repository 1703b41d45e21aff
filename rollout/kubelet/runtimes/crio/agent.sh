note_crio() {
  local n_value
  option ' --config -c '
  note_read crio.service "${n_value:-/etc/crio/crio.conf}"
  option ' --config-dir -d '
  n_value=${n_value:-/etc/crio/crio.conf.d}
  note_path "$n_value" "$n_value/99-rollout.conf"
  note_matching crio-conf "$n_value/*"
  # shellcheck disable=SC2086 # a list of paths
  note_read crio.service $n_matched
}
