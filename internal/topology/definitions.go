package topology

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// located is an object of a definitions file together with its vhost.
type located[T any] struct {
	vhost string
	of    T
}

// UnmarshalJSON reads the vhost and the object. The vhost stays empty for a file that was exported
// for one vhost, because such a file does not name it.
func (l *located[T]) UnmarshalJSON(text []byte) error {
	var where struct {
		VHost string `json:"vhost"`
	}
	if err := json.Unmarshal(text, &where); err != nil {
		return err
	}
	l.vhost = where.VHost
	return json.Unmarshal(text, &l.of)
}

// ReadDefinitions reads a definitions file that `rabbitmqctl export_definitions` or the management
// pages have written (measured on 3.10.8, 4.0.5 and 4.3.6), or a file that contains one, see
// definitionsIn. It returns one snapshot for each vhost, sorted by the names of the vhosts. A file
// that was exported for one vhost may not name the vhost. Its snapshot then has the vhost "".
func ReadDefinitions(text []byte) ([]Snapshot, error) {
	var file struct {
		Version    string               `json:"rabbitmq_version"`
		Older      string               `json:"rabbit_version"`
		VHosts     []vhostOf            `json:"vhosts"`
		Queues     []located[Queue]     `json:"queues"`
		Exchanges  []located[Exchange]  `json:"exchanges"`
		Bindings   []located[Binding]   `json:"bindings"`
		Policies   []located[Policy]    `json:"policies"`
		Parameters []located[parameter] `json:"parameters"`
		Error      string               `json:"error"` // of the management API, in place of definitions
		Reason     any                  `json:"reason"`
	}
	text, err := definitionsIn(text)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, badDefinitions(text, err)
	}
	if file.Error != "" {
		return nil, errors.New(textf("it is an error of the management API: %s %s", file.Error, fmt.Sprint(file.Reason)))
	}
	if file.Queues == nil && file.Policies == nil {
		return nil, errors.New(
			"the file has neither queues nor policies, so it is not a definitions file of RabbitMQ. " + exportAdvice,
		)
	}
	byVHost := map[string]*Snapshot{}
	at := func(vhost string) *Snapshot {
		if byVHost[vhost] == nil {
			byVHost[vhost] = &Snapshot{VHost: vhost, Version: cmp.Or(file.Version, file.Older)}
		}
		return byVHost[vhost]
	}
	for _, v := range file.VHosts {
		at(v.Name).DefaultType = v.defaultType()
	}
	add(file.Queues, at, func(s *Snapshot) *[]Queue { return &s.Queues })
	add(file.Exchanges, at, func(s *Snapshot) *[]Exchange { return &s.Exchanges })
	add(file.Bindings, at, func(s *Snapshot) *[]Binding { return &s.Bindings })
	add(file.Policies, at, func(s *Snapshot) *[]Policy { return &s.Policies })
	for _, p := range file.Parameters {
		if err := p.of.add(at(p.vhost)); err != nil {
			return nil, err
		}
	}
	join(byVHost)
	var list []Snapshot
	for _, s := range byVHost {
		if measured := measuredAround(s.Version); len(measured) == 1 {
			s = s.as(measured[0])
		}
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Snapshot) int { return cmp.Compare(a.VHost, b.VHost) })
	return list, nil
}

// add adds the objects of one kind to the snapshots of their vhosts.
func add[T any](list []located[T], at func(vhost string) *Snapshot, to func(s *Snapshot) *[]T) {
	for _, object := range list {
		of := to(at(object.vhost))
		*of = append(*of, object.of)
	}
}

// vhostOf is a vhost of a definitions file.
type vhostOf struct {
	Name     string          `json:"name"`
	Metadata json.RawMessage `json:"metadata"`
}

// defaultType returns the default type of queues of a vhost, or "" for classic queues. RabbitMQ
// reads it from the metadata only: it ignores a key default_queue_type of the vhost or of the file,
// and "undefined" means classic (3.10.8, 4.0.5, 4.3.6).
func (v vhostOf) defaultType() string {
	var metadata struct {
		Type string `json:"default_queue_type"`
	}
	if json.Unmarshal(v.Metadata, &metadata) != nil || !slices.Contains([]string{Quorum, Stream}, metadata.Type) {
		return ""
	}
	return metadata.Type
}

// join completes the snapshot of a file that was exported for one vhost. RabbitMQ 3.10 writes the
// vhost of policies and parameters into such a file, but not the vhost of queues, exchanges and
// bindings.
func join(byVHost map[string]*Snapshot) {
	unnamed := byVHost[""]
	if unnamed == nil || len(byVHost) != 2 {
		return
	}
	delete(byVHost, "")
	for _, s := range byVHost {
		s.Queues, s.Exchanges, s.Bindings = unnamed.Queues, unnamed.Exchanges, unnamed.Bindings
	}
}

// parameter is a runtime parameter: an operator policy, a shovel, a federation upstream, or a
// setting of another plugin.
type parameter struct {
	Component string          `json:"component"`
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
}

func (p parameter) add(s *Snapshot) error {
	if p.Component == "shovel" {
		s.AddShovel(p.Name, p.Value)
	}
	if p.Component != "operator_policy" {
		return nil
	}
	var policy Policy
	if err := json.Unmarshal(p.Value, &policy); err != nil {
		return fmt.Errorf("operator policy %s cannot be read: %w", safeName(p.Name), err)
	}
	policy.Name = p.Name
	s.Operators = append(s.Operators, policy)
	return nil
}

// AddShovel adds a dynamic shovel from the value of its parameter in RabbitMQ. If dlo cannot decode
// this value, AddShovel omits the shovel, because a finding about a shovel never claims that
// messages are lost.
func (s *Snapshot) AddShovel(name string, value json.RawMessage) {
	var v struct {
		From   string `json:"src-queue"`
		FromAt uris   `json:"src-uri"`
		To     string `json:"dest-queue"`
		ToAt   uris   `json:"dest-uri"`
	}
	if json.Unmarshal(value, &v) != nil {
		return
	}
	shovel := Shovel{Name: name}
	var here bool
	if here, shovel.FromAt = v.FromAt.place(s.VHost); here {
		shovel.From = v.From
	}
	if here, shovel.ToAt = v.ToAt.place(s.VHost); here {
		shovel.To = v.To
	}
	s.Shovels = append(s.Shovels, shovel)
}

// uris are the addresses of one end of a shovel: a text or a list of texts.
type uris []string

// UnmarshalJSON never fails, so that a definitions file can be read even if a shovel has unusual
// addresses. dlo can ignore such addresses, because a finding about a shovel never claims that
// messages are lost.
func (u *uris) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*u = uris{one}
		return nil
	}
	_ = json.Unmarshal(text, (*[]string)(u))
	return nil
}

// place reports whether the source or the destination of a shovel can be in the given vhost of this
// broker. The parameter u holds its addresses. An address without a host means this broker, and an
// address without a vhost means the vhost "/". If an address names a host, it may be another
// broker, and the result "host" is the name of that host.
func (u uris) place(vhost string) (here bool, host string) {
	for _, raw := range u {
		at, err := url.Parse(raw)
		switch {
		case err != nil:
			host = "an address that dlo cannot read"
		case !slices.Contains([]string{"", "localhost", "127.0.0.1", "::1"}, at.Hostname()):
			host = at.Hostname()
		default:
			there, err := url.PathUnescape(strings.TrimPrefix(at.EscapedPath(), "/"))
			if at.EscapedPath() == "" {
				there = "/"
			}
			here = here || err != nil || vhost == "" || there == vhost
		}
	}
	return here || host != "" || len(u) == 0, host
}

// badDefinitions returns an error that says where a definitions file is not valid.
func badDefinitions(text []byte, err error) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		before := text[:min(syntax.Offset, int64(len(text)))]
		return fmt.Errorf("line %d: %w", bytes.Count(before, []byte("\n"))+1, err)
	case errors.As(err, &wrong):
		must := cmp.Or(jsonTypes[wrong.Type.Kind()], "a number")
		return fmt.Errorf("%s must be %s, not %s", cmp.Or(wrong.Field, "the file"), must, wrong.Value)
	}
	return err
}

// jsonTypes has the names of the JSON types that Go decodes into values of a kind. All others are
// numbers.
var jsonTypes = map[reflect.Kind]string{
	reflect.Slice: "an array", reflect.Struct: "an object", reflect.Map: "an object", reflect.String: "a string",
	reflect.Bool: "true or false",
}
