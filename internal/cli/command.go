package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
)

// command is a row of the table of commands. It has commands below it, or it makes one call of the
// API, or its arguments have a method Run of their own.
type command struct {
	name, help string
	group      string    // heading in the help of dlo itself
	hidden     bool      // not in the help
	below      []command // the commands of a noun
	args       any       // a struct with the arguments and flags; nil = those of every call

	// route is the method and the path, such as "POST /groups/{group}/pause". An argument replaces
	// its name in braces. The other arguments and flags are the parameters of a GET or a DELETE,
	// and the members of any other request.
	route  string
	answer any // a value of the type of the answer; nil = a DELETE, which has none
	// rows names the member of the answer that is the list of a table, or several members. If it is
	// empty, the answer is one object.
	rows    string
	columns columns   // the columns of the table, or the facts about the object
	parts   []command // tables below the facts
	none    string    // what to say about an empty list
	text    string    // a template: what an act did, or what is said above the facts
	note    string    // a template of what is said on standard error

	// other is the command that is done instead, without an argument or with one
	without, with string
	other         *command

	ask     string                // a template of the question before it is done; the flags are those of askFlags
	dry     *command              // how the answer of a dry run is shown; nil = as the answer
	nothing string                // a template of the error if the question is empty: nothing would be done
	asked   func(json.RawMessage) // gets the answer of the dry run, if the user wants to go on
	sure    bool                  // without a terminal, it needs no --yes
	failed  string                // a template of the error for an answer that tells one
	partly  string                // and of one for an answer that tells that only a part was done
}

// noun is a row for a noun, with the commands below it.
func noun(name, group, help string, below ...command) command {
	return command{name: name, group: group, help: help, below: below}
}

// list is a row for a command that lists what an answer has in its member "rows".
func list(help string, args any, route, rows string, answer any, columns columns) command {
	return command{name: "list", help: help, args: args, route: route, rows: rows, answer: answer, columns: columns}
}

// act is a row for a command that does something, and says what it did.
func act(name, help string, args any, route string, answer any, text string) command {
	return command{name: name, help: help, args: args, route: route, answer: answer, text: text}
}

// own is a row for a command whose arguments have a method Run of their own.
func own(name, help string, args any) command { return command{name: name, help: help, args: args} }

// aliases are other names of commands.
var aliases = map[string]string{
	"list": "ls", "remove": "rm", "revoke": "rm", "brokers": "broker", "token": "tokens", "user": "users",
}

// alone are the commands that a noun does if no command follows it.
var alone = []string{"list", "preview", "check"}

// commands are all commands of this package, in the order of the manual.
func commands() []command {
	complete := own("complete", "Print the words that can complete a command line.", completeCmd{})
	complete.hidden = true
	list := []command{
		lettersTable(), groupsTable(), operationsTable(), viewsTable(), digestTable(),
		brokersTable(), queuesTable(), topologyTable(),
		act("try", "Send a test letter through every step, and report each step.", tryCmd{},
			"POST /trial", api.Trial{}, ""),
		rulesTable(), typesTable(), annotationsTable(), deploysTable(),
		auditTable(), notifyTable(), tokenTable(), userTable(),
		act("whoami", "Print who the server takes you for, and what you may do.", nil,
			"GET /me", api.Me{}, `{{template "me" .}}`),
		own("init", "Look at a broker, propose policies, and write a first configuration file. Nothing is changed on the "+
			"broker.", initCmd{}),
		own("reload", "Let a running dlo read its configuration file again, as SIGHUP does.", reloadCmd{}),
		own("health", "Ask a running dlo whether it is alive, or ready.", healthCmd{}),
		own("backup", "Make a checked copy of the whole store, while dlo is running.", backupCmd{}),
		own("restore", "Put a backup in the place of a store, or rehearse it.", restoreCmd{}),
		own("login", "Save a server and a token, so that the other commands use them.", loginCmd{}),
		contextTable(), configTable(),
		act("doctor", "Check everything that dlo needs on one screen: brokers, rights, dead-letter paths, clock, store, "+
			"disk, channels, schemas. Nothing is changed.", doctorCmd{}, "GET /doctor", api.Doctor{}, `{{template "doctor" .}}`),
		own("completion", "Write the completion of a shell.", completionCmd{}), complete,
		own("man", "Write the manual, for man -l -", manCmd{}), own("version", "Print the version.", versionCmd{}),
	}
	groups := map[string]string{"try": groupBrokers, "whoami": groupPeople}
	for i, c := range list {
		list[i].group = cmp.Or(c.group, groups[c.name], groupHere)
	}
	return list
}

// node returns the struct from which kong reads a command: its arguments, or a field for each
// command below it.
func (c command) node() reflect.Type {
	switch {
	case c.args != nil:
		return reflect.TypeOf(c.args)
	case c.below == nil:
		return reflect.TypeFor[callCmd]()
	}
	var fields []reflect.StructField
	for i, b := range c.below {
		tag := fmt.Sprintf("cmd:\"\" name:%q help:%q aliases:%q", b.name, b.help, aliases[b.name])
		if slices.Contains(alone, b.name) {
			tag += ` default:"withargs"`
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprint("Command", i),
			Type: b.node(),
			Tag:  reflect.StructTag(tag),
		})
	}
	return reflect.StructOf(fields)
}

// option adds a command to the parser.
func (c command) option() kong.Option {
	tags := []string{fmt.Sprintf("aliases:%q", aliases[c.name])}
	if c.hidden {
		tags = append(tags, `hidden:""`)
	}
	return kong.DynamicCommand(c.name, c.help, c.group, reflect.New(c.node()).Interface(), tags...)
}

// commandOf returns the row of the table for a command that kong has read.
func commandOf(node *kong.Node) (c command) {
	list := commands()
	for _, name := range strings.Fields(pathOf(node)) {
		if i := slices.IndexFunc(list, func(c command) bool { return c.name == name }); i >= 0 {
			c, list = list[i], list[i].below
		}
	}
	return c
}

// pathOf returns the name of a command without arguments, such as "letters list".
func pathOf(node *kong.Node) string {
	if node.Parent == nil {
		return ""
	}
	return strings.TrimSpace(pathOf(node.Parent) + " " + node.Name)
}
