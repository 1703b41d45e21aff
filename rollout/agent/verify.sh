# --------------------------------------------------------------------------------------------------------------- verify

verify_expect() { # what each file of the loaded transaction held before and after; which of them counts depends on the others
  local n mode
  n=1
  receipt_read_place
  while [ "$n" -le "$r_files" ]; do
    files_load "$n" || refuse program-failed "the note $T/file.$n could not be read" # else nothing would be expected of that file
    case " $m_list " in *" $f_path "*) ;; *) m_list="$m_list $f_path" ;; esac
    mode='- -'
    read -r mode 2>/dev/null <"$T/mode.$n" || mode='- -'
    say "expected $tx $r_state $r_seq $r_place $f_before $f_after $mode $f_path"
    n=$((n + 1))
  done
}

verb_verify() {
  local m_list name
  allow 25
  status_show ''
  m_list=''
  for name in $r_all; do
    receipt_load_known "$name" && verify_expect
  done
  # shellcheck disable=SC2086 # a list of names
  set -- $r_all
  if [ "$#" -gt 0 ] && receipt_load_known "$1"; then
    staging_mark_kubelet "$r_program"
    say "kubelet $1 ${r_kubelet:-unknown} $s_kubelet"
  fi
  each path measure_note_path
  managers_show_kubeadm
  measure_unit
  shown_files_show without
  homes_note
  shown_files_show_stale
  [ "${m_pid:-0}" = 0 ] || ! is_number "$m_started" || say "started $((now / 1000 - m_started / 1000000))"
}
