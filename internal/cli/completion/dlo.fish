function __dlo_complete
    dlo complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c dlo -f -a '(__dlo_complete)'
complete -c dlo -F -n 'test -z "$(__dlo_complete)"'
