verb_snapshot() {
  local folder name m_list
  allow 25
  status_show ''
  managers_show_managers
  homes_version systemd systemctl --version
  runtimes_show_versions
  folder=$S
  until [ -d "$folder/" ]; do folder=${folder%/*}; done
  # shellcheck disable=SC2046 # type, free blocks, block size
  set -- $(stat -f -c '%T %a %S' "$folder/")
  say "fact state-dir-fs ${1-unknown}"
  say "fact room-kib $((${2-0} * (${3-0} / 512) / 2))"
  read -r name 2>/dev/null <"$R/etc/hostname" && say "fact hostname $name"
  managers_show_cgroup
  managers_show_kubeadm
  measure_unit
  staging_find_kubelet "$m_pid"
  homes_version kubelet-version "$s_program" --version
  m_list=''
  homes_note
  [ "${m_odd:-0}" = 0 ] || say "fact odd-names $m_odd $(printf %s "$m_oddest" | tr -c 'A-Za-z0-9_./:@%+=,-' '?')"
  shown_files_show with
  managers_show_hard_links
  shown_files_show_stale
}
