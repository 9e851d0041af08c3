package view

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// run runs a command in a shell in which the given program only records its arguments. It returns
// these arguments.
func run(t *testing.T, program, command string) []string {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "arguments")
	script := "#!/bin/sh\nprintf '%s\\0' \"$@\" > " + out + "\n"
	if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh")
	c.Stdin = strings.NewReader(command + "\n")
	c.Env, c.Dir = []string{"PATH=" + dir}, dir
	if said, err := c.CombinedOutput(); err != nil || len(said) > 0 {
		t.Fatalf("%v: %s", err, said)
	}
	made, err := os.ReadDir(dir)
	if err != nil || len(made) != 2 {
		t.Errorf("the command made files: %v, %v", made, err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// hostileMessage returns a message that tries to end the quotes of a shell word.
func hostileMessage() (deadletter.Origin, deadletter.Properties, []byte) {
	const out = `'; : > broken; echo '`
	p := deadletter.Properties{
		ContentType:  out,
		DeliveryMode: 2,
		MessageID:    "$(: > broken)",
		Type:         "`: > broken`",
		AppID:        `"\` + "\n\r\x1b[200~" + `!!`,
		Timestamp:    time.Unix(1763625600, 0),
		Headers: deadletter.Table{
			out:        out,
			"lines":    "a\n: > broken\n'b",
			"int32":    int32(-5),
			"large":    int64(math.MaxInt64),
			"third":    float64(2),
			"exponent": 1e30,
			"yes":      true,
			"é\u202e":  "日本\u200b\x00",
			"list":     []any{"a'", deadletter.Table{"b'": int64(1)}},
			"void":     nil,
			"bytes":    []byte{1},
			"at":       time.Now(),
			"nan":      math.NaN(),
			"latin":    "\xe9",
			"\xff":     "name",
			"in":       []any{[]byte{1}},
			"price":    deadletter.Decimal{Scale: 2, Value: 1},
		},
	}
	return deadletter.Origin{
		Broker: "main", VHost: "a'b/c d", Queue: "it's; : > broken",
	}, p, []byte("\x00'; : > broken #\n")
}

func TestACommandIsOneCommandWhateverTheLetter(t *testing.T) {
	t.Parallel()
	o, p, body := hostileMessage()
	want := map[string]any{
		"content_type":  p.ContentType,
		"delivery_mode": 2.0,
		"message_id":    p.MessageID,
		"type":          p.Type,
		"app_id":        p.AppID,
		"timestamp":     1763625600.0,
		"headers": map[string]any{
			`'; : > broken; echo '`: `'; : > broken; echo '`,
			"lines":                 "a\n: > broken\n'b",
			"int32":                 -5.0,
			"large":                 float64(math.MaxInt64),
			"third":                 2.0,
			"exponent":              1e30,
			"yes":                   true,
			"é\u202e":               "日本\u200b\x00",
			"list":                  []any{"a'", map[string]any{"b'": 1.0}},
		},
	}
	curl, admin := Curl(o, p, body), Admin(o, p, body)
	for _, c := range []Copy{curl, admin} {
		if c.Why != "" || !slices.ContainsFunc(
			c.Left, func(s string) bool { return s == "header bytes: the management API has no such type: bytes" },
		) || len(c.Left) != 8 {
			t.Errorf("%q %q", c.Why, c.Left)
		}
		if deadletter.VisibleLines(c.Text) != c.Text || !strings.Contains(c.Text, `"third":2.0`) ||
			!strings.Contains(c.Text, `"exponent":1.0e+30`) || !strings.Contains(
			c.Text, "9223372036854775807",
		) {
			t.Errorf("%s", c.Text)
		}
	}
	args := run(t, "curl", curl.Text)
	if len(args) != 7 || args[0] != "--user" || args[4] != "--data-raw" ||
		args[6] != "http://HOST:15672/api/exchanges/a%27b%2Fc%20d/amq.default/publish" {
		t.Fatalf("%q", args)
	}
	var sent struct {
		Properties map[string]any
		Key        string `json:"routing_key"`
		Payload    []byte
		Encoding   string `json:"payload_encoding"`
	}
	if err := json.Unmarshal([]byte(args[5]), &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Key != o.Queue || string(sent.Payload) != string(body) || sent.Encoding != "base64" ||
		!cmp.Equal(sent.Properties, want) {
		t.Errorf("%+v\n%s", sent, cmp.Diff(sent.Properties, want))
	}

	args = run(t, "rabbitmqadmin", admin.Text)
	if len(args) != 13 || args[6] != "--vhost="+o.VHost || args[7] != "publish" || args[9] != "routing_key="+o.Queue ||
		args[12] != "payload="+base64.StdEncoding.EncodeToString(body) {
		t.Fatalf("%q", args)
	}
	sent.Properties = nil
	if err := json.Unmarshal(
		[]byte(strings.TrimPrefix(args[10], "properties=")), &sent.Properties,
	); err != nil || !cmp.Equal(sent.Properties, want) {
		t.Errorf("%v %s", err, cmp.Diff(sent.Properties, want))
	}
}

func TestThereIsNoCommandThatIsTooLargeOrNotWhatItLooksLike(t *testing.T) {
	t.Parallel()
	o, p := deadletter.Origin{VHost: "/", Queue: "q"}, deadletter.Properties{}
	for _, c := range []struct {
		why  string
		copy Copy
	}{
		{"unknown which queue", Curl(deadletter.Origin{VHost: "/"}, p, nil)},
		{"cannot be seen", Admin(deadletter.Origin{VHost: "/", Queue: "a\u202eb"}, p, nil)},
		{"body is too large", Curl(o, p, make([]byte, 50_000))},
		{
			"letter is too large",
			Admin(o, deadletter.Properties{Headers: deadletter.Table{"x": strings.Repeat("x", 70_000)}}, nil),
		},
	} {
		if c.copy.Text != "" || !strings.Contains(c.copy.Why, c.why) {
			t.Errorf("%q, want %q", c.copy.Why, c.why)
		}
	}
	if c := Curl(o, p, nil); c.Why != "" || len(run(t, "curl", c.Text)) != 7 {
		t.Errorf("%+v", c)
	}
	if c, err := JSONCopy(strings.Repeat("x", 200_000)); err != nil || c.Text != "" || !strings.Contains(c.Why, "Get it from the API") {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := JSONCopy(map[string]string{"a": "<b>\u202e"}); err != nil || c.Text != "{\n  \"a\": \"<b>\\u202e\"\n}" {
		t.Errorf("%q %v", c.Text, err)
	}
}
