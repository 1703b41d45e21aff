verb_snapshot() {
  local name m_list
  allow 25
  status_show ''
  managers_show_managers
  homes_version systemd systemctl --version
  runtimes_show_versions
  # the kernel's, which systemd writes for %H
  { read -r name <"$R/proc/sys/kernel/hostname" || read -r name <"$R/etc/hostname"; } 2>/dev/null && say "fact hostname $name"
  managers_show_cgroup
  managers_show_kubeadm
  measure_unit
  staging_find_kubelet "$m_pid"
  homes_kubelet_version
  m_list=''
  homes_note
  surroundings_show_room
  surroundings_show
  measure_note_path /etc/systemd/logind.conf.d/99-kubelet.conf # of a kubelet that has raised logind's delay
  [ "${m_odd:-0}" = 0 ] || say "fact odd-names $m_odd $(printf %s "$m_oddest" | tr -c 'A-Za-z0-9_./:@%+=,-' '?')"
  shown_files_show with
  managers_show_hard_links
  shown_files_show_stale
}
