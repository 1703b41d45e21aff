main() { # VERB ARGUMENT…
  local self
  verb=${1-}
  read -r self _ </proc/self/stat # in a subshell, $$ is another process
  [ "$#" -eq 0 ] || shift
  until=0
  case $verb in
    guard | watch | boot | leave)
      tx=${1--} force=0
      trap tell EXIT # to the node's journal
      "verb_$verb"
      exit
      ;;
  esac
  protocol_take_order "$@"
  processes_choose_unit
  "verb_$verb"
  finish
}

case $0 in rollout) ;; *) main "$@" ;; esac # in a conversation, frames call main
