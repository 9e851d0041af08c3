package config

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

const initialText = `# Written by dlo init. "dlo config show FILE" prints all settings, with their defaults.
brokers:
  - name: main
    %s: %s%s
    exchange: dlo.dlx      # dead-letter exchange, which dlo declares
    inboxes: [dlo.letters] # dlo declares the queue, binds it to the exchange, and drains it
    # observe: true        # take letters in and show them at first, and send nothing back
`

// Initial returns a minimal configuration file for the broker at a URL. A password other than that
// of the user guest does not belong in it. Initial returns such a password, and the text has the
// name of the file for it instead. The parameter "management" is the value of DLO_MANAGEMENT_URL,
// which stays in that variable if it has a password.
func Initial(address, management, passwordFile string) (text, password string, err error) {
	u, err := brokerURL(address, []string{"amqp", "amqps"})
	if err != nil {
		return "", "", err
	}
	if u, err := url.Parse(management); err == nil && management != "" {
		value := inFlow(node(noVariables(management)))
		if _, secret := u.User.Password(); secret {
			value = "${DLO_MANAGEMENT_URL}"
		}
		management = "\n    management: " + value
	}
	if password, _ = u.User.Password(); password == "" || password == "guest" {
		return fmt.Sprintf(initialText, "url", inFlow(node(noVariables(address))), management), "", nil
	}
	amqp := map[string]any{
		"host": u.Hostname(), "tls": u.Scheme == "amqps", "vhost": cmp.Or(strings.TrimPrefix(u.Path, "/"), "/"),
		"user": u.User.Username(), "password_file": passwordFile,
	}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		amqp["port"] = port
	}
	parameters := u.Query()
	for key, parameter := range tlsParameters {
		if parameters.Has(parameter) {
			amqp[key] = parameters.Get(parameter)
			parameters.Del(parameter)
		}
	}
	if len(parameters) > 0 {
		return "", "", fmt.Errorf("no key fits the parameter %s of this URL: leave it out", parameters.Encode())
	}
	for key, value := range amqp {
		if text, ok := value.(string); ok {
			amqp[key] = noVariables(text)
		}
	}
	return fmt.Sprintf(initialText, "amqp", inFlow(node(amqp)), management), password, nil
}
