%(complete_func)s() {
  local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} last prefix='' kind value answer
  last=${line##* }
  case $last in  # bash replaces only what stands after the last of these, except inside quotes
    [\'\"]*) ;;
    *[@=:]*) prefix=${last%%"${last##*[@=:]}"} prefix=${prefix#--*=} ;;
  esac
  answer=$(env COMP_WORDS="$line" %(complete_var)s=bash_complete "$1")
  while IFS=, read -r kind value; do
    case $kind in
      dir) compopt -o dirnames ;;
      file) compopt -o default ;;
      plain) COMPREPLY+=("${value#"$prefix"}") ;;
    esac
  done <<<"$answer"
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
