package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/query"
)

type completionCmd struct {
	Shell string `arg:"" name:"shell" enum:"bash,zsh,fish" help:"bash, zsh or fish; for example: source <(dlo completion bash)"`
}

func (c completionCmd) Run(p *Program, parser *kong.Kong) error {
	root := tree(parser.Model.Node, "")
	var err error
	switch c.Shell {
	case "bash":
		_, err = io.WriteString(p.Stdout, wordsOf(root)+bashCompletion)
	case "zsh":
		_, err = io.WriteString(p.Stdout, "#compdef dlo\n"+wordsOf(root)+zshCompletion)
	default:
		_, err = io.WriteString(p.Stdout, fishCompletion(root))
	}
	return err
}

// wordsOf returns the part of the completion script that bash and zsh share. It consists of shell
// functions that print lists of words and keep no state.
func wordsOf(root command) string {
	var commands, flags, words, fields strings.Builder
	root.each(func(c command) {
		var names, options []string
		for _, s := range c.subs {
			names = append(names, s.name())
		}
		for _, f := range c.flags {
			options = append(options, "--"+f.Name)
			if v := values(f); len(v) > 0 {
				fmt.Fprintf(
					&words, "    %s) echo %s ;;\n", quoteWord(c.path+" --"+f.Name), quoteWord(strings.Join(v, " ")),
				)
				if f.Short != 0 {
					fmt.Fprintf(
						&words, "    %s) echo %s ;;\n", quoteWord(c.path+" -"+string(f.Short)),
						quoteWord(strings.Join(v, " ")),
					)
				}
			}
		}
		fmt.Fprintf(&commands, "    %s) echo %s ;;\n", quoteWord(c.path), quoteWord(strings.Join(names, " ")))
		fmt.Fprintf(
			&flags, "    %s) echo %s ;;\n", quoteWord(c.path), quoteWord(strings.Join(append(options, "--help"), " ")),
		)
	})
	for _, h := range query.Help() {
		if v := plainValues(h); len(v) > 0 {
			fmt.Fprintf(&fields, "    %s) echo %s ;;\n", h.Field, quoteWord(strings.Join(v, " ")))
		}
	}
	text := "# Written by dlo completion; write it again after an update.\n"
	for _, f := range []struct{ name, body string }{
		{"commands", commands.String()},
		{"flags", flags.String()},
		{"values", words.String()},
		{"query", fields.String()},
	} {
		text += fmt.Sprintf("_dlo_%s() {\n  case \"$1\" in\n%s  esac\n}\n", f.name, f.body)
	}
	return text + fmt.Sprintf("_dlo_fields=%s\n", quoteWord(strings.Join(fieldWords(), " ")))
}

// quoteWord returns a word in quotes for a shell.
func quoteWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

const bashCompletion = `
_dlo() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" at="" word words field=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " $(_dlo_commands "$at") " in
      *" $word "*) at="${at:+$at }$word" ;;
    esac
  done
  COMPREPLY=()
  # A colon is a word of its own to bash: state : de
  if [[ "$cur" == ":" ]]; then
    field="$prev" cur=""
  elif [[ "$prev" == ":" ]]; then
    field="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  if [[ -n "$field" ]]; then
    COMPREPLY=($(compgen -W "$(_dlo_query "$field")" -- "$cur"))
    return
  fi
  case "$prev" in
    -q | --query)
      COMPREPLY=($(compgen -W "$_dlo_fields" -- "$cur"))
      compopt -o nospace 2>/dev/null
      return
      ;;
  esac
  words="$(_dlo_values "$at $prev")"
  if [[ -z "$words" ]]; then
    words="$(_dlo_commands "$at")"
    [[ "$cur" == -* || -z "$words" ]] && words="$(_dlo_flags "$at")"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _dlo dlo
`

const zshCompletion = `
_dlo() {
  local at="" word list prev="${words[CURRENT-1]}"
  for word in "${(@)words[2,CURRENT-1]}"; do
    case " $(_dlo_commands "$at") " in
      *" $word "*) at="${at:+$at }$word" ;;
    esac
  done
  case "$prev" in
    -q | --query)
      if compset -P '*:'; then
        compadd -- ${(s: :)"$(_dlo_query "${${IPREFIX%:}##*[\" ]}")"}
      else
        compadd -S '' -- ${(s: :)_dlo_fields}
      fi
      return
      ;;
  esac
  list="$(_dlo_values "$at $prev")"
  if [[ -z "$list" ]]; then
    list="$(_dlo_commands "$at")"
    [[ "$PREFIX" == -* || -z "$list" ]] && list="$(_dlo_flags "$at")"
  fi
  compadd -- ${(s: :)list}
}
if [[ "$funcstack[1]" == _dlo ]]; then
  _dlo "$@"
else
  compdef _dlo dlo
fi
`

// fishCompletion returns the completion script for fish. The script has one line for each command,
// each flag and each query field.
func fishCompletion(root command) string {
	var paths []string
	var b strings.Builder
	root.each(func(c command) {
		if c.path != "" {
			paths = append(paths, quoteWord(c.path))
		}
		at := "__dlo_at " + quoteWord(c.path)
		for _, s := range c.subs {
			fmt.Fprintf(&b, "complete -c dlo -f -n %s -a %s -d %s\n", quoteWord(at), s.name(), quoteWord(s.help))
		}
		for _, f := range c.flags {
			line := fmt.Sprintf("complete -c dlo -n %s -l %s -d %s", quoteWord(at), f.Name, quoteWord(f.Help))
			if f.Short != 0 {
				line += " -s " + string(f.Short)
			}
			switch v := values(f); {
			case f.Name == "query":
				line += " -xa " + quoteWord(strings.Join(fieldWords(), " "))
			case len(v) > 0:
				line += " -xa " + quoteWord(strings.Join(v, " "))
			case !f.IsBool():
				line += " -r"
			}
			b.WriteString(line + "\n")
		}
	})
	return "# Written by dlo completion; write it again after an update.\nset -g __dlo_paths " +
		strings.Join(paths, " ") + `
function __dlo_at
    set -l at
    for word in (commandline -opc)[2..]
        set -l next (string trim -- "$at $word")
        contains -- "$next" $__dlo_paths; and set at $next
    end
    test "$at" = "$argv[1]"
end
` + b.String()
}
