package schemas

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	askAgain  = 5 * time.Minute
	patience  = 30 * time.Second // maximum time for all requests to one server together
	maxAnswer = 16 << 20         // maximum size of a message in bytes
)

// readServer reads the types of a server and puts them into use. If the server does not respond,
// its previous types stay.
func (l *Library) readServer(ctx context.Context, address string) {
	err := l.askServer(ctx, address)
	if ctx.Err() != nil {
		return // dlo is stopping
	}
	now := deadletter.SchemaServer{Address: address, At: l.Now().UTC()}
	if err != nil {
		now.Problem = deadletter.Visible(deadletter.Cut(err.Error(), 500))
	}
	l.mu.Lock()
	was := l.servers[address]
	l.servers[address] = now
	l.mu.Unlock()
	switch {
	case now.Problem == was.Problem:
	case now.Problem == "":
		l.Log.Info("types are read from a server again", "server", address)
	default:
		l.Log.Error("types cannot be read from a server", "server", address, "err", now.Problem)
	}
}

func (l *Library) askServer(ctx context.Context, address string) error {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := grpc.NewClient(
		address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	)
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := readReflection(asking, conn)
	if err != nil {
		return err
	}
	l.change.Lock()
	defer l.change.Unlock()
	current, was := l.registry.Current(address)
	switch {
	case current != nil && was.Source != deadletter.SchemaReflection:
		return errors.New("there is another set of this name, which stays in use; remove it, or rename it")
	case current != nil && current.Version() == s.Version():
		return nil
	}
	c := l.registry.Compare(address, s)
	return l.adopt(ctx, deadletter.SchemaVersion{
		Name:   address,
		Source: deadletter.SchemaReflection,
		Detail: address,
		By:     deadletter.Service.Name,
	}, s, &c)
}
