note_crio() {
  option ' --config -c '
  note_read crio.service "${value:-/etc/crio/crio.conf}"
  option ' --config-dir -d '
  value=${value:-/etc/crio/crio.conf.d}
  note_path "$value" "$value/99-rollout.conf"
  note_matching crio-conf "$value/*"
  # shellcheck disable=SC2086 # a list of paths
  note_read crio.service $matched
}
