_dlo() {
  local IFS=$'\n'
  COMPREPLY=($(dlo complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ "${COMPREPLY[0]}" == *[:.] ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -F _dlo dlo
