verb_snapshot() {
  local folder name m_list
  allow 25
  show_state ''
  show_managers
  version systemd systemctl --version
  show_runtime_versions
  folder=$S
  until [ -d "$folder/" ]; do folder=${folder%/*}; done
  # shellcheck disable=SC2046 # type, free blocks, block size
  set -- $(stat -f -c '%T %a %S' "$folder/")
  say "fact state-dir-fs ${1-unknown}"
  say "fact room-kib $((${2-0} * (${3-0} / 512) / 2))"
  read -r name 2>/dev/null <"$R/etc/hostname" && say "fact hostname $name"
  show_cgroup
  show_kubeadm
  measure_unit
  find_kubelet "$m_pid"
  version kubelet-version "$s_program" --version
  m_list=''
  note_homes
  [ "${m_odd:-0}" = 0 ] || say "fact odd-names $m_odd $(printf %s "$m_oddest" | tr -c 'A-Za-z0-9_./:@%+=,-' '?')"
  show_files with
  show_hard_links
  show_stale
}
