package cli

import (
	"fmt"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type notifyCmd struct {
	Test notifyTestCmd `cmd:"" help:"Send a test notice to a channel, and print what its receiver answers."`
}

type notifyTestCmd struct {
	answerFlags
	Channel string `arg:"" help:"Name of the channel in the configuration."`
}

func (c notifyTestCmd) Run(p *Program) error {
	var a api.ChannelTested
	printed, err := c.fetch(p, http.MethodPost, "/channels/test", api.ChannelTest{Channel: c.Channel}, &a)
	switch {
	case err != nil:
		return err
	case !a.Accepted:
		return fmt.Errorf("%s did not accept the test: %s", deadletter.Visible(a.Channel), deadletter.Visible(a.Answer))
	case !printed:
		fmt.Fprintf(p.Stdout, "%s accepted the test: %s\n", deadletter.Visible(a.Channel), deadletter.Visible(a.Answer))
	}
	return nil
}
