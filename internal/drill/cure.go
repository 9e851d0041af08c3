package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// errNoCure means that the text of a problem contains no command that cures it.
var errNoCure = errors.New("no command is shown that would cure it")

// shellWord matches one word of a command, quoted or not, as dlo prints it.
var shellWord = regexp.MustCompile(`(?:'[^']*'|\\'|[^\s'\\])+`)

// commands returns the rabbitmqctl commands in a text. Each command is split into words.
func commands(text string) (list [][]string) {
	parts := strings.Split(text, "rabbitmqctl ")
	for _, part := range parts[1:] {
		var words []string
		for _, word := range shellWord.FindAllString(part, -1) {
			words = append(words, unquoted(word))
		}
		list = append(list, words)
	}
	return list
}

// unquoted returns a word of a shell command without its quotes.
func unquoted(word string) string {
	const quote = "\x00"
	return strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(word, `\'`, quote), "'", ""), quote, "'")
}

// apply runs the rabbitmqctl commands in a text. It sends them as calls to the management API.
func (s *site) apply(ctx context.Context, text string) error {
	list := commands(text)
	if len(list) == 0 {
		return errNoCure
	}
	for _, words := range list {
		if err := s.command(ctx, words); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) command(ctx context.Context, words []string) error {
	at := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	if at(1) == "-p" && at(2) != s.vhost {
		return fmt.Errorf("the command is for vhost %s: %s", at(2), strings.Join(words, " "))
	}
	switch {
	case at(0) == "set_policy" && at(3) == "--priority" && at(5) == "--apply-to" && len(words) >= 10:
		priority, err := strconv.Atoi(at(4))
		definition := strings.TrimRight(at(9), ").") // the sentence around the command may end with these characters
		if err != nil || !json.Valid([]byte(definition)) {
			return fmt.Errorf("a command that cannot be read: %s", strings.Join(words, " "))
		}
		return s.Do(ctx, "PUT", s.apiPath("policies", at(7)), map[string]any{
			"pattern": at(8), "apply-to": at(6), "priority": priority, "definition": json.RawMessage(definition),
		}, nil)
	case at(0) == "set_permissions" && len(words) >= 7:
		return s.grant(ctx, at(3), rights{at(4), at(5), at(6)})
	case at(0) == "set_user_tags" && at(1) == s.user:
		return s.account(ctx, s.password, at(2))
	}
	return fmt.Errorf("a command that the drill does not know: %s", strings.Join(words, " "))
}
