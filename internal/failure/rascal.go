package failure

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// rascal reads the table "rascal" that Rascal's recovery strategies "republish" and "forward" add
// to the headers. Its member "recovery" counts the attempts by queue.
func (r *reading) rascal() (f deadletter.Failure, found bool) {
	const header = "rascal"
	value, _ := r.value(header)
	table := tableOf(value)
	queue := textOf(table["originalQueue"])
	failed := tableOf(table["error"])
	if queue == "" && failed == nil {
		return f, false
	}
	at := func(name string) part { return part{header, textOf(failed[name]), []string{"error", name}} }
	r.setError(&f, at("code"), at("message"), part{})
	f.Queue = validName(queue)
	f.Exchange = validName(textOf(table["originalExchange"]))
	f.RoutingKey = validName(textOf(table["originalRoutingKey"]))
	recovery := tableOf(tableOf(table["recovery"])[queue])
	f.Attempts = cmp.Or(countOf(recovery["republished"]), countOf(recovery["forwarded"]))
	return f, true
}
