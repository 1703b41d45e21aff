# ------------------------------------------------------------------------------------------ the protocol

# `python -m tests.agent.protocol` writes this part, from rollout/kubelet/agent/protocol.py.

protocol_take_order() { # KEY=VALUE…: the arguments of `verb`, each in the variable of its name
  case $verb in snapshot | status | verify | apply | confirm | revert | freeze | unfreeze | cleanup | forget) ;; *) refuse bad-argument "no such verb" ;; esac
  tx='' run='' counter='' machine='' guard=120 keep=3 unit=kubelet.service healthz=0 force=0 claim=0 measure=0 unread=0 evidence=0 void=0 strays=0 roles=0 pulls=''
  for word in "$@"; do
    case $word in *[!A-Za-z0-9_./:@%+=,-]*) refuse bad-argument "a word outside the alphabet" ;; esac
    value=${word#*=}
    case $word in
      tx=*) tx=$value ;;
      run=*) run=$value ;;
      counter=*) counter=$value ;;
      machine=*) machine=$value ;;
      guard=*) guard=$value ;;
      keep=*) keep=$value ;;
      unit=*) unit=$value ;;
      healthz=*) healthz=$value ;;
      force=*) force=$value ;;
      claim=*) claim=$value ;;
      measure=*) measure=$value ;;
      unread=*) unread=$value ;;
      evidence=*) evidence=$value ;;
      void=*) void=$value ;;
      strays=*) strays=$value ;;
      roles=*) roles=$value ;;
      pulls=*) pulls=$value ;;
      *) refuse bad-argument "$word" ;;
    esac
  done
  if ! { is_name "$unit" && is_number "$guard" && is_number "$keep" && is_number "$healthz"; }; then
    refuse bad-argument "unit, guard, keep or healthz"
  fi
  case $verb in
    apply | confirm | revert) need tx run counter ;;
    freeze | unfreeze | cleanup | forget) need run counter ;;
  esac
}
