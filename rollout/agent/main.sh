main() { # VERB ARGUMENT…
  verb=${1-}
  [ "$#" -eq 0 ] || shift
  until=0
  case $verb in
    guard | watch | boot)
      tx=${1--} force=0
      "verb_$verb" # its output goes to the node's journal
      exit
      ;;
    snapshot | status | verify | apply | confirm | revert | cleanup | forget)
      arguments "$@"
      "verb_$verb"
      ;;
    *) refuse bad-argument "no such verb" ;;
  esac
  finish
}

case $0 in rollout) ;; *) main "$@" ;; esac # under the loader the payload comes first, and the loader calls main
