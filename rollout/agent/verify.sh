# --------------------------------------------------------------------------------------------------------------- verify

expect() { # what the loaded transaction's files should hold, except those that a newer one touched too
  n=1
  while [ "$n" -le "$r_files" ]; do
    if load_file "$n"; then
      case " $list " in *" $f_path "*) ;; *) expect_file "$n" ;; esac
    fi
    n=$((n + 1))
  done
}

expect_file() { # N
  list="$list $f_path" mode='- -'
  case $r_state in
    confirmed) holds=$f_after ;;
    reverted) holds=$f_before ;;
    *) holds=- ;; # under way: old or new
  esac
  case $holds in - | absent) ;; *) read -r mode 2>/dev/null <"$T/mode.$1" || mode='- -' ;; esac
  say "expected $tx $r_state $holds $mode $f_path"
}

verb_verify() {
  allow 60
  show_state ''
  list=''
  for name in $all_tx; do
    load_known "$name" && expect
  done
  # shellcheck disable=SC2086 # a list of names
  set -- $all_tx
  if [ "$#" -gt 0 ] && load_known "$1"; then
    mark_kubelet "$r_program"
    say "kubelet $1 ${r_kubelet:-unknown} $kubelet"
  fi
  each path note_path
  show_kubeadm
  measure_unit
  show_files without
  note_homes
  show_stale
  [ "${main_pid:-0}" = 0 ] || ! is_number "$main_started" || say "started $((now / 1000 - main_started / 1000000))"
}
