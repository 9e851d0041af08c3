package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// onlyDead says whether the query asks for nothing but what needs a person: its empty answer is
// good news.
func (p LettersPage) onlyDead() bool {
	return len(p.Tokens) == 1 && len(p.States) == 1 && p.States[0] == deadletter.StateDead
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// connection says whether dlo is connected to a broker.
func (s Shell) connection() []Span {
	for _, b := range s.Brokers {
		if b.Up {
			return []Span{{Text: "done: " + line(b.Detail, 100) + "."}}
		}
	}
	return []Span{{Text: "not yet."}}
}

func typesLine(n int) []Span {
	if n == 0 {
		return []Span{{Text: "Optional: payloads show field numbers and bytes until then."}}
	}
	return []Span{{Text: Number(n, "type is", "types are") + " known."}}
}

// command gives one queue the dead-letter exchange by policy.
func (f FirstRun) command() string {
	return "rabbitmqctl set_policy --vhost " + shellWord(line(f.VHost, 255)) + " --apply-to queues dead-letters '^my-queue$' " +
		shellWord(`{"dead-letter-exchange":"`+line(f.Exchange, 200)+`"}`)
}
