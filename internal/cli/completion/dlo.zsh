#compdef dlo
_dlo() {
  local -a list=("${(@f)$(dlo complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -S '' -- ${(M)list:#*[:.]}
  compadd -- ${list:#*[:.]}
}
if [[ "$funcstack[1]" == _dlo ]]; then
  _dlo "$@"
else
  compdef _dlo dlo
fi
