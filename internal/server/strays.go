package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// straysWait is how long a page waits while the store looks for letters whose broker or vhost is
// not in the configuration.
const straysWait = 2 * time.Second

// strays returns problems about letters whose broker or vhost is not in the configuration. If the
// store does not respond, strays returns no problems, and /readyz gives the reason.
func (s *Server) strays() []deadletter.Problem {
	ctx, cancel := context.WithTimeout(context.Background(), straysWait)
	defer cancel()
	vhosts := map[string]string{} // name of a broker -> its vhost
	for i, b := range s.cfg.Brokers {
		vhosts[b.Name] = s.links[i].VHost()
	}
	found, err := s.findStrays(ctx, func(broker, vhost string) bool {
		at, ok := vhosts[broker]
		return ok && at == vhost
	})
	if err != nil {
		return nil
	}
	var list []deadletter.Problem
	for i := range found {
		vhost, known := vhosts[found[i].Broker]
		if known {
			list = append(list, vhostProblem(&found[i], vhost))
		} else {
			list = append(list, strayProblem(&found[i], s.cfg.Brokers))
		}
	}
	return list
}

// strayProblem returns the problem of a broker that has letters in the store, but is not in the
// configuration. Nothing sends these letters. The problem names the command to run.
func strayProblem(stray *deadletter.Stray, brokers []config.Broker) deadletter.Problem {
	p := nobodySends(stray, "broker "+deadletter.Visible(stray.Broker)+", which is not configured")
	present := "NEW-NAME"
	if len(brokers) == 1 {
		present = deadletter.ShellWord(deadletter.Visible(brokers[0].Name))
	}
	const text = "If the broker has another name now, stop dlo and run: dlo brokers rename %s %s. " +
		`If it is still needed, write an entry for it, which applies from the next start: - {name: %s, url: "amqp://..."}. ` +
		"Or discard the letters: dlo letters discard -q '%s'"
	letters := query.Query{}.With(query.Broker, stray.Broker)
	away := deadletter.ShellWord(deadletter.Visible(stray.Broker))
	p.Cure = fmt.Sprintf(text, away, present, asYAML(stray.Broker), letters)
	return p
}

// vhostProblem returns the problem of a vhost whose letters no dispatcher sends. The configuration
// contains the broker of these letters, but with another vhost.
func vhostProblem(stray *deadletter.Stray, vhost string) deadletter.Problem {
	name, at := deadletter.Visible(stray.Broker), deadletter.Visible(stray.VHost)
	p := nobodySends(
		stray,
		fmt.Sprintf(
			"vhost %s of broker %s, which has vhost %s in the configuration", at, name, deadletter.Visible(vhost),
		),
	)
	p.Cure = fmt.Sprintf(`Nothing takes letters from one vhost to another. Give the url of broker %s the vhost %s again, and vhost %s an entry of its own: - {name: NEW-NAME, url: "amqp://..."}. Or discard the letters: dlo letters discard -q '%s'`,
		name, at, deadletter.Visible(vhost),
		query.Query{}.With(query.Broker, stray.Broker).With(query.VHost, stray.VHost))
	return p
}

func nobodySends(stray *deadletter.Stray, whose string) deadletter.Problem {
	n, belong := stray.Waiting()+stray.Needy()+stray.Watched(), "letters belong"
	if n == 1 {
		belong = "letter belongs"
	}
	p := deadletter.Problem{
		Kind:     deadletter.ProblemBrokerUnknown,
		Severity: deadletter.SeverityNotify,
		Broker:   stray.Broker,
		VHost:    stray.VHost,
		Title:    fmt.Sprintf("%d %s to %s.", n, belong, whose),
		Text:     strayText(stray),
	}
	if stray.Waiting() > 0 {
		p.Severity = deadletter.SeverityPage
	}
	return p
}

// strayText returns a text about letters that no dispatcher sends. It says how many of them wait
// for a retry, wait for a decision of a person, or were sent.
func strayText(s *deadletter.Stray) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{s.Waiting(), "wait for a retry that never comes"},
		{s.Needy(), "need people, and cannot be requeued"},
		{s.Watched(), "were sent, and nothing watches whether they come back"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, "; ") + "."
}

// asYAML returns a name as it must be written in the configuration.
func asYAML(name string) string {
	if isPlain(name) {
		return name
	}
	return fmt.Sprintf("%q", deadletter.Visible(name))
}

// isPlain reports whether a name needs no quotes, neither in the configuration nor in a shell.
func isPlain(name string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-_."
	return name != "" && strings.Trim(strings.ToLower(name), plain) == ""
}
