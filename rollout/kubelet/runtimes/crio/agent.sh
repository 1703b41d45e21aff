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
