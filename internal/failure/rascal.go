package failure

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// rascal reads the table "rascal" that Rascal's recovery strategies "republish" and "forward" add
// to the headers. Its member "recovery" counts the attempts by queue.
func (r *reading) rascal() (f deadletter.Failure, found bool) {
	table := r.header("rascal")
	queue := table.at("originalQueue").text()
	if queue == "" && tableOf(table.member("error").value) == nil {
		return f, false
	}
	r.setError(&f, table.at("error.code"), table.at("error.message"), part{})
	f.Queue, f.Exchange = validName(queue), validName(table.at("originalExchange").text())
	f.RoutingKey = validName(table.at("originalRoutingKey").text())
	recovery := tableOf(tableOf(table.member("recovery").value)[queue])
	f.Attempts = cmp.Or(countOf(recovery["republished"]), countOf(recovery["forwarded"]))
	return f, true
}
