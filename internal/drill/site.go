package drill

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ourNames matches the names of the vhosts and users that a drill creates.
var ourNames = regexp.MustCompile(`^dlo-drill-[a-z0-9]{10}$`)

// allRights is the set of all rights in a vhost.
var allRights = rights{".*", ".*", ".*"}

type rights struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// site is the vhost of the drill, with its user.
type site struct {
	*fence
	name     string // name of the vhost, the user and the folder that the drill creates
	password string
	admin    bool   // true if the caller may create users, rights and operator policies
	caller   string // user with which the drill calls the API
	made     bool   // true if the drill creates the vhost and deletes it at the end
	entered  bool   // true if the drill gave the caller rights in the vhost
}

// ErrNotAdmin means that the user of the management API may not create a vhost and a user.
var ErrNotAdmin = errors.New("the user of the management API is not an administrator")

// ErrNotEmpty means that the vhost is not empty.
var ErrNotEmpty = errors.New("the vhost is not empty")

// newSite asks the management API who the caller is, and chooses the vhost and the user of the
// drill. If "vhost" is "", the drill creates both. The parameters "user" and "password" are those
// of the management API.
func newSite(ctx context.Context, api API, vhost, user, password string) (*site, error) {
	var who struct {
		Name string          `json:"name"`
		Tags json.RawMessage `json:"tags"` // a list; up to RabbitMQ 3.8, a string
	}
	if err := api.Do(ctx, "GET", "/api/whoami", nil, &who); err != nil {
		return nil, err
	}
	name := "dlo-drill-" + strings.ToLower(rand.Text()[:10])
	s := &site{
		fence:    &fence{api: api, vhost: name, user: name},
		name:     name,
		password: rand.Text(),
		caller:   who.Name,
		admin:    strings.Contains(string(who.Tags), "administrator"),
		made:     vhost == "",
	}
	switch {
	case !s.admin && s.made:
		return nil, fmt.Errorf(
			"%w. Somebody else can make what the drill needs:\n%s\nThen give the drill the vhost, and the URL of the API with that user:\n  dlo drill --vhost %s --management-file FILE\nWhat takes an administrator is left out then",
			ErrNotAdmin, s.commands(), name,
		)
	case !s.admin:
		s.user, s.password = user, password
	}
	if !s.made {
		s.vhost = vhost
		return s, s.checkEmpty(ctx)
	}
	return s, nil
}

// commands returns the commands that create the vhost and the user of a drill.
func (s *site) commands() string {
	return fmt.Sprintf(
		"  rabbitmqctl add_vhost %[1]s\n  rabbitmqctl add_user %[1]s   # it asks for a password\n  rabbitmqctl set_user_tags %[1]s policymaker\n  rabbitmqctl set_permissions -p %[1]s %[1]s '.*' '.*' '.*'",
		s.vhost,
	)
}

// checkEmpty returns an error if the vhost contains anything. It is used for a vhost that the drill
// did not create.
func (s *site) checkEmpty(ctx context.Context) error {
	type named struct {
		Name string `json:"name"`
	}
	for _, kind := range []string{"queues", "exchanges", "policies"} {
		var list []named
		if err := s.Do(ctx, "GET", s.apiPath(kind), nil, &list); err != nil {
			return fmt.Errorf("vhost %s: %w", deadletter.Visible(s.vhost), err)
		}
		for _, o := range list {
			if kind == "exchanges" && (o.Name == "" || strings.HasPrefix(o.Name, "amq.")) {
				continue
			}
			return fmt.Errorf(
				"%w: vhost %s has %s, for example %s. The drill works in an empty one only", ErrNotEmpty,
				deadletter.Visible(s.vhost), kind, deadletter.Visible(o.Name),
			)
		}
	}
	list, err := s.Connections(ctx)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf(
			"%w: vhost %s has connections, for example %s", ErrNotEmpty, deadletter.Visible(s.vhost),
			deadletter.Visible(list[0].Name),
		)
	}
	return err
}

// apiPath returns the path in the management API of the vhost's objects of one kind. With names, it
// returns the path of one object.
func (s *site) apiPath(kind string, names ...string) string {
	path := "/api/" + kind + "/" + url.PathEscape(s.vhost)
	for _, n := range names {
		path += "/" + url.PathEscape(n)
	}
	return path
}

// build creates the vhost and the user of the drill, and gives the user rights in this vhost.
func (s *site) build(ctx context.Context) error {
	if s.made {
		if err := s.Do(ctx, "PUT", s.apiPath("vhosts"), map[string]string{
			"description": "made by dlo drill, which removes it; dlo drill --clean does so too",
		}, nil); err != nil {
			return err
		}
	}
	if !s.admin {
		return nil
	}
	if err := s.account(ctx, s.password, "management"); err != nil {
		return err
	}
	if err := s.grant(ctx, s.user, allRights); err != nil {
		return err
	}
	var had rights
	if err := s.Do(ctx, "GET", s.apiPath("permissions", s.caller), nil, &had); err == nil && !s.made {
		return nil
	}
	s.entered = true
	return s.grant(ctx, s.caller, allRights)
}

// account sets the password and the tags of the drill's user.
func (s *site) account(ctx context.Context, password, tags string) error {
	return s.Do(ctx, "PUT", "/api/users/"+s.user, map[string]string{"password": password, "tags": tags}, nil)
}

func (s *site) grant(ctx context.Context, user string, r rights) error {
	return s.Do(ctx, "PUT", s.apiPath("permissions", user), r, nil)
}

// remove removes everything that the drill created. A vhost that somebody else created stays, and
// is then empty again.
func (s *site) remove(ctx context.Context) error {
	var errs []error
	gone := func(path string) {
		if err := s.Do(ctx, "DELETE", path, nil, nil); err != nil && !errors.Is(err, deadletter.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	if s.made {
		gone(s.apiPath("vhosts"))
	} else {
		errs = append(errs, s.clear(ctx, gone))
	}
	if s.admin {
		gone("/api/users/" + s.user)
	}
	return errors.Join(errs...)
}

// clear removes the queues, exchanges and policies whose names begin with "drill" or "dlo".
func (s *site) clear(ctx context.Context, gone func(path string)) error {
	var errs []error
	for _, kind := range []string{"policies", "operator-policies", "queues", "exchanges"} {
		if kind == "operator-policies" && !s.admin {
			continue
		}
		var list []struct {
			Name string `json:"name"`
		}
		errs = append(errs, s.Do(ctx, "GET", s.apiPath(kind), nil, &list))
		for _, o := range list {
			if strings.HasPrefix(o.Name, "drill") || strings.HasPrefix(o.Name, "dlo") {
				gone(s.apiPath(kind, o.Name))
			}
		}
	}
	if s.entered {
		gone(s.apiPath("permissions", s.caller))
	}
	return errors.Join(errs...)
}
