package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type annotationsCmd struct {
	Add annotationsAddCmd `cmd:"" help:"Report why a message was rejected, as its consumer would (see docs/consumers.md)."`
}

type annotationsAddCmd struct {
	answerFlags
	File       string `arg:"" name:"file" optional:"" help:"JSON, one annotation or an array of them, instead of the flags; - reads standard input."`
	MessageID  string `name:"message-id" help:"The message: its property message_id,"`
	Token      string `name:"dlo-token" help:"or its header dlo-token,"`
	BodySHA256 string `name:"body-sha256" help:"or the SHA-256 of its body, in hex."`
	Queue      string `name:"queue" help:"The queue that it was delivered from."`
	Exchange   string `name:"exchange" help:"The exchange that it was published to."`
	RoutingKey string `name:"routing-key" help:"The routing key that it was published with."`
	ErrorType  string `name:"error-type" help:"What kind of error, for example TimeoutError."`
	Message    string `name:"message" help:"What went wrong."`
	Stack      string `name:"stack" help:"The stack trace."`
	Service    string `name:"service" help:"Who rejected it."`
	Version    string `name:"version" help:"The version of that service."`
	At         string `name:"at" help:"When, for example 2026-11-20T14:00:00Z."`
	Broker     string `name:"broker" help:"The broker, by its name in the configuration; the first if omitted."`
	VHost      string `name:"vhost" help:"The vhost; the broker's if omitted."`
}

// annotatedWords returns a sentence that says how many annotations the server stored.
func annotatedWords(r api.Annotated) string {
	text := fmt.Sprintf("%d annotations stored", r.New)
	if r.Again > 0 {
		text += fmt.Sprintf(", %d were already there", r.Again)
	}
	return text + fmt.Sprintf("; %d letters were waiting for one", r.Joined)
}

func (c annotationsAddCmd) Run(p *Program) error {
	said := api.Annotation{
		MessageID:  c.MessageID,
		Token:      c.Token,
		BodySHA256: c.BodySHA256,
		Queue:      c.Queue,
		Exchange:   c.Exchange,
		RoutingKey: c.RoutingKey,
		ErrorType:  c.ErrorType,
		Message:    c.Message,
		Stack:      c.Stack,
		Service:    c.Service,
		Version:    c.Version,
		At:         c.At,
		Broker:     c.Broker,
		VHost:      c.VHost,
	}
	if c.File == "" {
		return add(p, c.answerFlags, "/annotations", said, annotatedWords)
	}
	if said != (api.Annotation{}) {
		return fmt.Errorf("%w: the file contains the whole annotation; leave the flags out", errUsage)
	}
	in, err := openInput(p, c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if text = bytes.TrimSpace(text); !json.Valid(text) {
		return fmt.Errorf("%w: %s holds no JSON", errUsage, deadletter.Visible(c.File))
	}
	return add(p, c.answerFlags, "/annotations", json.RawMessage(text), annotatedWords)
}
