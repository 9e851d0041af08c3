package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// names contains the names of the exchange and of the two queues that dlo declares on the broker.
type names struct{ exchange, inbox, annotations string }

// usualNames are the names that dlo uses by default.
var usualNames = names{"dlo.dlx", "dlo.letters", "dlo.annotations"}

// broker is the RabbitMQ that the demo uses. It is either a private node or an existing broker that
// the user named.
type broker struct {
	url        string // AMQP URL
	managedAt  string // URL of the management API, with user and password; "" if there is none
	management *management
	names      names
	node       *testenv.Node // the private node; nil if an existing broker is used
	connection *amqp.Connection
}

// openBroker connects to the broker in DLO_AMQP_URL. If that variable is empty, it starts a private
// node. If "install" is true, it first installs RabbitMQ for that node unless it is installed
// already.
func openBroker(ctx context.Context, p *program, install bool) (*broker, error) {
	b := &broker{
		url:       p.getenv("DLO_AMQP_URL"),
		managedAt: p.getenv("DLO_MANAGEMENT_URL"),
		names:     names{"dlo.demo.dlx", "dlo.demo.letters", "dlo.demo.annotations"},
	}
	if b.url == "" {
		b.names = usualNames
		if err := b.start(ctx, p, install); err != nil {
			return nil, err
		}
	}
	if err := b.connect(); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// start starts a private node. If "install" is true, it first installs RabbitMQ if it is missing.
func (b *broker) start(ctx context.Context, p *program, install bool) error {
	if install {
		if err := installRabbitMQ(p); err != nil {
			return err
		}
	}
	p.say("starting a private RabbitMQ (5 to 30 s)")
	node, err := testenv.Start(ctx, testenv.Options{Root: p.getenv("DLO_TEST_BROKER")})
	if err != nil {
		return err
	}
	b.node, b.url = node, node.AMQPURL("/")
	b.managedAt = node.ManagementURLOf("guest:guest")
	return nil
}

// installRabbitMQ runs .ci/install, which installs the RabbitMQ package if it is missing. If the
// package is there, the script prints nothing. If the script cannot install the package, it prints
// what the user must install.
func installRabbitMQ(p *program) error {
	cmd := exec.Command(filepath.Join(".ci", "install"), "rabbitmq-server")
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.module, p.stdout, p.stderr
	var ended *exec.ExitError
	if err := cmd.Run(); errors.As(err, &ended) {
		return fmt.Errorf(
			"%w: RabbitMQ (see above); or give the demo a broker that runs: DLO_AMQP_URL=amqp://user:password@host:5672/vhost make demo",
			testenv.ErrMissing,
		)
	} else if err != nil {
		return fmt.Errorf("install rabbitmq-server: %w", err)
	}
	return nil
}

func (b *broker) connect() error {
	uri, err := amqp.ParseURI(b.url)
	if err != nil {
		return errors.New("DLO_AMQP_URL is not a URL such as amqp://guest:guest@127.0.0.1:5672/")
	}
	if b.managedAt != "" {
		if b.management, err = newManagement(b.managedAt, uri.Vhost); err != nil {
			return err
		}
	}
	b.connection, err = amqp.DialConfig(b.url, amqp.Config{Properties: amqp.Table{"connection_name": "dlo demo"}})
	if err != nil {
		return fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	if b.node != nil {
		return nil
	}
	if err := checkFree(b.connection, b.names.inbox); err != nil {
		b.connection.Close()
		return err
	}
	return nil
}

// describe returns one line that says which broker the demo uses.
func (b *broker) describe() string {
	if b.node == nil {
		version, _ := b.connection.Properties["version"].(string)
		return fmt.Sprintf("RabbitMQ %s, the one that DLO_AMQP_URL gives", version)
	}
	return fmt.Sprintf("RabbitMQ %s, a private node: %s (guest, guest)", b.node.Version(), b.node.ManagementURL())
}

// stop closes the demo's connection and ends the private node. An existing broker keeps running,
// and tidy removes what the demo created on it.
func (b *broker) stop() {
	if b.connection != nil {
		b.connection.Close()
	}
	if b.node != nil {
		b.node.Stop()
	}
}

// tidy removes everything that the demo created on an existing broker. The caller must end dlo
// first. tidy opens a connection of its own, because the connection of the services may be closed.
// The parameter "folder" is the directory of dlo's store. The notes in this directory say which
// queues dlo used.
func (b *broker) tidy(folder string) error {
	if b.node != nil {
		return nil
	}
	c, err := amqp.Dial(b.url)
	if err != nil {
		return err
	}
	defer c.Close()
	return remove(c, b.management, b.names, marksOf(folder))
}

// marksOf returns the names of the queues in which the demo's dlo recorded how far its store had
// got. It reads these names from the notes in the folder.
func marksOf(folder string) (list []string) {
	notes, _ := filepath.Glob(filepath.Join(folder, "*.progress-????????")) // this pattern is always valid
	for _, note := range notes {
		text, err := os.ReadFile(note)
		if err != nil {
			continue
		}
		if p, err := deadletter.ParseProgress(text); err == nil {
			list = append(list, deadletter.MarkQueue(p.Store))
		}
	}
	return list
}

// moduleFolder returns the folder that contains go.mod. It looks in the working directory first and
// then in each directory above it.
func moduleFolder() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the demo builds dlo, so it runs in its source tree; there is no go.mod above %s", wd)
		}
	}
}
