package cli

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type viewsCmd struct {
	List   viewsListCmd   `cmd:"" help:"List saved queries."`
	Add    viewsAddCmd    `cmd:"" help:"Save a query under a name."`
	Remove viewsRemoveCmd `cmd:"" help:"Remove a saved query."`
}

type viewsListCmd struct{ answerFlags }

func (c viewsListCmd) Run(p *Program) error {
	list := listing[api.View]{
		path:  "/views",
		key:   "views",
		whole: true,
		head:  []string{"ID", "NAME", "QUERY", "WHO", "SAVED"},
		none:  "there are no views",
	}
	return list.run(p, c.answerFlags, func(v api.View) []string {
		return []string{strconv.FormatInt(v.ID, 10), v.Name, v.Query, v.By, ago(v.At, time.Now())}
	})
}

type viewsAddCmd struct {
	answerFlags
	Name  string `arg:"" name:"name" help:"The name."`
	Query string `arg:"" name:"query" help:"The query; relative times stay relative."`
}

func (c viewsAddCmd) Run(p *Program) error {
	return add(p, c.answerFlags, "/views", api.ViewRequest{Name: c.Name, Query: c.Query}, func(v api.View) string {
		return fmt.Sprintf("view %d: %s", v.ID, v.Name)
	})
}

type viewsRemoveCmd struct {
	answerFlags
	ID int64 `arg:"" name:"id" help:"The number that the list shows."`
}

func (c viewsRemoveCmd) Run(p *Program) error {
	return remove(p, c.answerFlags, "/views", "view", c.ID)
}

type overridesCmd struct {
	List   overridesListCmd   `cmd:"" help:"List redirects."`
	Add    overridesAddCmd    `cmd:"" help:"Send the letters of a queue to another queue of its broker and vhost."`
	Remove overridesRemoveCmd `cmd:"" help:"Remove a redirect: letters go to their own queue again."`
}

type overridesListCmd struct{ answerFlags }

func (c overridesListCmd) Run(p *Program) error {
	list := listing[deadletter.Override]{
		path:  "/overrides",
		key:   "overrides",
		whole: true,
		head:  []string{"ID", "BROKER", "VHOST", "QUEUE", "GOES TO", "WHO", "SAVED", "REASON"},
		none:  "there are no redirects",
	}
	return list.run(p, c.answerFlags, func(o deadletter.Override) []string {
		return []string{
			strconv.FormatInt(o.ID, 10), o.Broker, o.VHost, o.Queue, o.To, o.By, ago(o.At, time.Now()), o.Reason,
		}
	})
}

type overridesAddCmd struct {
	answerFlags
	placeFlags
	Queue  string `arg:"" name:"queue" help:"The queue that letters died in."`
	To     string `arg:"" name:"to" help:"The queue that the letters go to."`
	Reason string `name:"reason" help:"Why, for the audit."`
}

// placeFlags are the flags that select a broker and a vhost.
type placeFlags struct {
	Broker string `name:"broker" help:"The broker, by its name in the configuration; may be omitted if there is only one."`
	VHost  string `name:"vhost" help:"The vhost; the broker's if omitted."`
}

func (c overridesAddCmd) Run(p *Program) error {
	body := api.OverrideRequest{Broker: c.Broker, VHost: c.VHost, Queue: c.Queue, To: c.To, Reason: c.Reason}
	return add(p, c.answerFlags, "/overrides", body, func(o deadletter.Override) string {
		return fmt.Sprintf("redirect %d: letters of %s go to %s", o.ID, o.Queue, o.To)
	})
}

type overridesRemoveCmd struct {
	answerFlags
	ID int64 `arg:"" name:"id" help:"The number that the list shows."`
}

func (c overridesRemoveCmd) Run(p *Program) error {
	return remove(p, c.answerFlags, "/overrides", "redirect", c.ID)
}

// add sends a new object to the server with POST, and prints what the server saved. The function
// "words" returns the text to print.
func add[T any](p *Program, f answerFlags, path string, body any, words func(T) string) error {
	var v T
	if printed, err := f.fetch(p, http.MethodPost, path, body, &v); printed || err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Stdout, deadletter.Visible(words(v)))
	return err
}

func remove(p *Program, f answerFlags, path, what string, id int64) error {
	if err := f.call(p, http.MethodDelete, path+"/"+strconv.FormatInt(id, 10), nil, nil); err != nil {
		return err
	}
	if f.Output != "table" {
		return printJSON(p.Stdout, map[string]any{"id": id, "removed": true}, f.Output == "json")
	}
	_, err := fmt.Fprintf(p.Stdout, "%s %d is removed\n", what, id)
	return err
}
