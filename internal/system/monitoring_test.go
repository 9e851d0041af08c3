package system

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"go.yaml.in/yaml/v3"
)

const monitoring = "../../docs/monitoring/"

// documented contains the names of dlo's metrics, each with its labels in alphabetical order.
// Dashboards and alerts of other people rely on them.
var documented = map[string]string{
	"dlo_backup_last_rehearsal_timestamp_seconds": "", "dlo_backup_last_success_timestamp_seconds": "",
	"dlo_config_last_reload_successful": "", "dlo_build_info": "commit goversion version",
	"dlo_ready": "", "dlo_broker_up": "broker", "dlo_inbox_draining": "broker inbox",
	"dlo_ingested_total": "broker inbox verdict", "dlo_annotations_total": "outcome", "dlo_ingest_lag_seconds": "",
	"dlo_classify_backlog": "", "dlo_readings_total": "reading", "dlo_reading_seconds_total": "reading",
	"dlo_received_total": "broker queue reason", "dlo_letters": "state", "dlo_letters_overdue": "queue severity",
	"dlo_problems": "broker kind severity", "dlo_findings": "broker kind severity vhost",
	"dlo_findings_age_seconds": "broker vhost", "dlo_groups": "severity status", "dlo_dead_total": "queue severity",
	"dlo_attempts_total": "outcome queue", "dlo_came_back_total": "queue",
	"dlo_schedule_lag_seconds": "", "dlo_notifications_total": "channel outcome",
}

// closed maps a metric and its label to all possible values of the label. It contains only labels
// whose values never come from outside dlo.
var closed = map[string][]string{
	"dlo_letters state":               stringsOf(deadletter.States),
	"dlo_readings_total reading":      stringsOf(deadletter.Readings),
	"dlo_groups status":               {"new", "open", "escalating", "regressed"},
	"dlo_groups severity":             {"page", "notify", "digest"},
	"dlo_letters_overdue severity":    {"page", "notify", "digest"},
	"dlo_problems severity":           {"page", "notify"},
	"dlo_problems kind":               stringsOf(deadletter.ProblemKinds),
	"dlo_findings severity":           {"page", "notify", "digest"},
	"dlo_findings kind":               stringsOf(topology.Kinds()),
	"dlo_dead_total severity":         {"page", "notify", "digest"},
	"dlo_annotations_total outcome":   {"new", "again", "joined", "refused"},
	"dlo_ingested_total verdict":      {"new", "came_back", "copy", "merged"},
	"dlo_attempts_total outcome":      {"confirmed", "returned", "nacked", "refused", "unknown"},
	"dlo_notifications_total outcome": {"sent", "retried", "failed"},
}

func stringsOf[S ~string](list []S) (texts []string) {
	for _, s := range list {
		texts = append(texts, string(s))
	}
	return texts
}

func sorted(list []string) string {
	slices.Sort(list)
	return strings.Join(list, " ")
}

// describedMetrics returns the labels and the help text of each metric, by its name. It includes
// metrics that have no value yet.
func describedMetrics(t *testing.T) (labels, help map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(
		path, []byte("listen: 127.0.0.1:0\nstore: "+filepath.Join(t.TempDir(), "dlo.db")+"\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), cfg, server.Options{Getenv: noEnvironment, Log: io.Discard, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	descs := make(chan *prometheus.Desc)
	go func() { s.Registry.Describe(descs); close(descs) }()
	labels, help = map[string]string{}, map[string]string{}
	form := regexp.MustCompile(
		`^Desc\{fqName: "([^"]*)", help: "(.*?)",.* constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`,
	)
	for d := range descs {
		m := form.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("a description of another form: %s", d)
		}
		labels[m[1]], help[m[1]] = sorted(strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' })), m[2]
	}
	return labels, help
}

// TestMetricsAreDocumented checks that the program, its documentation and this test name the same
// metrics with the same labels.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	labels, help := describedMetrics(t)
	maps.DeleteFunc(labels, func(name, _ string) bool { return !strings.HasPrefix(name, "dlo_") })
	if diff := cmp.Diff(documented, labels); diff != "" {
		t.Errorf("the program (-want +got):\n%s", diff)
	}
	for name := range documented {
		if strings.HasSuffix(name, "_seconds") && !strings.HasPrefix(help[name], "Seconds ") || help[name] == "" {
			t.Errorf("%s is explained as %q", name, help[name])
		}
	}
	manual, err := os.ReadFile(monitoring + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]*)`")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(
		"(?m)^\\| `(dlo_[a-z_]+)` \\| (gauge|counter) \\|([^|]*)\\|",
	).FindAllStringSubmatch(string(manual), -1) {
		var list []string
		for _, label := range quoted.FindAllStringSubmatch(m[3], -1) {
			list = append(list, label[1])
		}
		rows[m[1]] = sorted(list)
		if (m[2] == "counter") != strings.HasSuffix(m[1], "_total") {
			t.Errorf("%s is no %s", m[1], m[2])
		}
	}
	if diff := cmp.Diff(documented, rows); diff != "" {
		t.Errorf("README.md (-want +got):\n%s", diff)
	}
	for what, values := range closed {
		for _, v := range values {
			if !strings.Contains(string(manual), "`"+v+"`") {
				t.Errorf("README.md does not name %s of %s", v, what)
			}
		}
	}
}

// question is a PromQL expression, with the place in which it is written.
type question struct{ where, text string }

var (
	rateInterval = strings.NewReplacer("$__rate_interval", "5m")
	promVariable = regexp.MustCompile(`^label_values\(([^{,]+(?:\{[^}]*\})?), *(\w+)\)$`)
)

// dashboardQuestions returns the PromQL expressions in the panels and variables of the dashboard.
func dashboardQuestions(t *testing.T) []question {
	t.Helper()
	text, err := os.ReadFile(monitoring + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	type source struct{ Type, UID string }
	var board struct {
		SchemaVersion int
		Panels        []struct {
			ID                       int
			Type, Title, Description string
			Datasource               source
			Targets                  []struct {
				Datasource         source
				Expr, LegendFormat string
			}
		}
		Templating struct {
			List []struct {
				Name, Type string
				Query      any
				Datasource source
			}
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	if board.SchemaVersion < 42 { // 42 is the last schema version of this format, used by Grafana 12
		t.Errorf("schema version %d", board.SchemaVersion)
	}
	ours := source{"prometheus", "${datasource}"}
	var list []question
	var names []string
	for _, v := range board.Templating.List {
		names = append(names, v.Type+" "+v.Name)
		if v.Type != "query" {
			continue
		}
		ask, _ := v.Query.(map[string]any)["query"].(string)
		m := promVariable.FindStringSubmatch(ask)
		if m == nil || v.Datasource != ours {
			t.Errorf("variable %s asks %q of %v", v.Name, ask, v.Datasource)
			continue
		}
		list = append(list, question{"variable " + v.Name, "count by (" + m[2] + ") (" + m[1] + ")"})
	}
	if got := strings.Join(names, ", "); got != "datasource datasource, query broker, query queue" {
		t.Errorf("the variables are %s", got)
	}
	seen := map[int]bool{}
	for _, p := range board.Panels {
		if seen[p.ID] {
			t.Errorf("panel %s has the number of another", p.Title)
		}
		seen[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Datasource != ours || len(p.Targets) == 0 || p.Description == "" {
			t.Errorf(
				"panel %s has data source %v, %d queries and the description %q", p.Title, p.Datasource, len(p.Targets),
				p.Description,
			)
		}
		for _, target := range p.Targets {
			if target.Datasource != ours {
				t.Errorf("panel %s asks %v", p.Title, target.Datasource)
			}
			list = append(list, question{"panel " + p.Title, rateInterval.Replace(target.Expr)})
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if label[1] != "instance" &&
					!regexp.MustCompile(`by \([^)]*\b`+label[1]+`\b`).MatchString(target.Expr) {
					t.Errorf("panel %s: the legend names %s, which %s does not keep", p.Title, label[1], target.Expr)
				}
			}
		}
	}
	return list
}

// manualQuestions returns the PromQL expressions in README.md of the monitoring documents.
func manualQuestions(t *testing.T) []question {
	t.Helper()
	text, err := os.ReadFile(monitoring + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Questions\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var list []question
	for _, m := range regexp.MustCompile("(?m)^\\| (.*\\?) \\| `(.*)` \\|$").FindAllStringSubmatch(table, -1) {
		list = append(list, question{"README.md: " + m[1], strings.ReplaceAll(m[2], `\|`, "|")})
	}
	if len(list) < 5 {
		t.Fatalf("%d questions in README.md", len(list))
	}
	return list
}

var (
	metricName  = regexp.MustCompile(`\b((?:dlo|go|process)_\w+|up)(?:\{([^}]*)\})?`)
	matcher     = regexp.MustCompile(`(\w+) *(=~|!~|!=|=) *"([^"]*)"`)
	labelClause = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right) *\(([^)]*)\)`)
)

// mistakes returns everything in a question that dlo does not have: metrics, labels and label
// values.
func (q question) mistakes(labels map[string]string) (list []string) {
	wrong := func(format string, args ...any) {
		list = append(list, q.where+": "+fmt.Sprintf(format, args...)+" in "+q.text)
	}
	kept := map[string]bool{"job": true, "instance": true}
	for _, m := range metricName.FindAllStringSubmatch(labelClause.ReplaceAllString(q.text, ""), -1) {
		own, ok := labels[m[1]]
		if m[1] != "up" && !ok {
			wrong("no metric %s", m[1])
			continue
		}
		for _, label := range strings.Fields(own) {
			kept[label] = true
		}
		for _, part := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(strings.Fields(own), part[1]) && part[1] != "job" {
				wrong("%s has no label %s", m[1], part[1])
			}
			values, ok := closed[m[1]+" "+part[1]]
			for _, v := range strings.Split(part[3], "|") {
				if ok && !slices.Contains(values, v) {
					wrong("%s of %s is never %s", part[1], m[1], v)
				}
			}
		}
		if left := strings.Trim(matcher.ReplaceAllString(m[2], ""), ", "); left != "" {
			wrong("matchers %q that cannot be read", left)
		}
	}
	for _, m := range labelClause.FindAllStringSubmatch(q.text, -1) {
		for _, label := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !kept[label] {
				wrong("no label %s", label)
			}
		}
	}
	return list
}

// TestMonitoringAsksForWhatThereIs checks the dashboard, the alerts and the manual. They may use
// only metrics, labels and label values that dlo has.
func TestMonitoringAsksForWhatThereIs(t *testing.T) {
	t.Parallel()
	labels, _ := describedMetrics(t)
	asked := append(dashboardQuestions(t), manualQuestions(t)...)
	tested, err := os.ReadFile(monitoring + "alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile(monitoring + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile(`See (docs/[A-Za-z/]+\.md)\.$`)
	for _, a := range alertRules(t) {
		asked = append(asked, question{a.Alert, a.Expr})
		if s := a.Labels["severity"]; s != "page" && s != "notify" {
			t.Errorf("%s has severity %q", a.Alert, s)
		}
		m := page.FindStringSubmatch(a.Annotations["description"])
		if a.For == "" || a.Annotations["summary"] == "" || m == nil {
			t.Errorf("%s: for %q, %v", a.Alert, a.For, a.Annotations)
		} else if _, err := os.Stat("../../" + m[1]); err != nil {
			t.Errorf("%s: %v", a.Alert, err)
		}
		if !strings.HasPrefix(
			a.Annotations["runbook_url"],
			"https://github.com/deadletteroffice/dlo/blob/main/docs/monitoring/README.md#",
		) {
			t.Errorf("%s has no runbook: %v", a.Alert, a.Annotations)
		}
		if !strings.Contains(string(tested), `alertname="`+a.Alert+`"`) {
			t.Errorf("alerts_test.yaml has no %s that fires", a.Alert)
		}
		if !strings.Contains(string(manual), "| `"+a.Alert+"` |") {
			t.Errorf("README.md does not say why there is %s", a.Alert)
		}
	}
	used := map[string]bool{}
	for _, q := range asked {
		for _, mistake := range q.mistakes(labels) {
			t.Error(mistake)
		}
		for _, m := range metricName.FindAllStringSubmatch(q.text, -1) {
			used[m[1]] = true
		}
	}
	for name := range documented {
		if !used[name] {
			t.Errorf("nothing asks for %s", name)
		}
	}
	for _, c := range []struct{ text, want string }{
		{`rate(dlo_recieved_total[5m])`, "no metric dlo_recieved_total"},
		{`dlo_letters{queue="a"}`, "dlo_letters has no label queue"},
		{`sum by (queue) (dlo_letters)`, "no label queue"},
		{`dlo_letters{state=~"dead|gone"}`, "state of dlo_letters is never gone"},
		{`dlo_letters{state='dead'}`, "matchers"},
	} {
		if got := (question{"here", c.text}).mistakes(labels); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestPromtool checks the alerts and their tests with promtool. It also checks each question,
// written as a recording rule.
func TestPromtool(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	promtool := testenv.Promtool(t)
	var rules []map[string]string
	for i, q := range append(dashboardQuestions(t), manualQuestions(t)...) {
		rules = append(rules, map[string]string{"record": fmt.Sprintf("question_%d", i), "expr": q.text})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "questions", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	questions := filepath.Join(t.TempDir(), "questions.yaml")
	if err := os.WriteFile(questions, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "alerts.yaml"},
		{"test", "rules", "alerts_test.yaml"},
		{"check", "rules", questions},
	} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = monitoring
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestMetricsOfARunningDlo runs a dlo that stores letters, sends one back, receives it again and
// notifies people. This dlo must report every metric, with the documented labels and with known
// values.
func TestMetricsOfARunningDlo(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, amqpURL := node.VHost(t)
	if err := node.API(
		http.MethodPut, "/api/queues/"+url.PathEscape(vhost)+"/unprotected", map[string]any{"durable": true}, nil,
	); err != nil {
		t.Fatal(err)
	}
	r := newReceiver(t)
	settings := fmt.Sprintf(
		"brokers: [{url: %q, management: %q}]\nbackup: {folder: %q}\n", amqpURL, node.ManagementURLOf("guest:guest"),
		t.TempDir(),
	)
	p := newChild(t, amqpURL, settings+strings.Replace(r.configFor(t, "page"), "delays: []", "delays: [100ms]", 1))
	p.Start("")
	p.Draining()
	a := newAudit(t, amqpURL, "orders", nil)
	a.refuse = func(*amqp.Delivery) bool { return true }
	a.work()
	a.publish(3, func(i int) (string, string) { return fmt.Sprint(i), fmt.Sprint(i) })
	want := map[string]string{
		`dlo_ready `: "1", `dlo_broker_up broker="main"`: "1",
		`dlo_inbox_draining broker="main",inbox="dlo.letters"`: "1", `dlo_classify_backlog `: "0",
		`dlo_ingested_total broker="main",inbox="dlo.letters",verdict="new"`:                    "3",
		`dlo_ingested_total broker="main",inbox="dlo.letters",verdict="came_back"`:              "3",
		`dlo_received_total broker="main",queue="orders",reason="rejected"`:                     "6",
		`dlo_dead_total queue="orders",severity="page"`:                                         "3",
		`dlo_came_back_total queue="orders"`:                                                    "3",
		`dlo_attempts_total outcome="confirmed",queue="orders"`:                                 "3",
		`dlo_groups severity="page",status="new"`:                                               "1",
		`dlo_notifications_total channel="hook",outcome="failed"`:                               "0",
		`dlo_findings broker="main",kind="no_exchange",severity="notify",vhost="` + vhost + `"`: "1",
		`dlo_letters state="dead"`:                                                              "3",
		`dlo_notifications_total channel="hook",outcome="sent"`:                                 "1",
	}
	var metrics string
	values := map[string]string{}
	t.Cleanup(func() {
		for name, v := range want {
			if values[name] != v {
				t.Logf("%s is %q, want %s", name, values[name], v)
			}
		}
	})
	series := regexp.MustCompile(`(?m)^(dlo_[a-z_]+)(?:\{(.*)\})? (\S+)$`)
	eventually(t, "the letters are dead, and all of it is counted", func() bool {
		_, metrics = p.get("/metrics")
		clear(values)
		for _, m := range series.FindAllStringSubmatch(metrics, -1) {
			values[m[1]+" "+m[2]] = m[3]
		}
		for name, v := range want {
			if values[name] != v {
				return false
			}
		}
		return true
	})
	got := map[string]string{}
	for _, m := range series.FindAllStringSubmatch(metrics, -1) {
		var names []string
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			names = append(names, label[1])
			if list, ok := closed[m[1]+" "+label[1]]; ok && !slices.Contains(list, label[3]) {
				t.Errorf("%s is not documented", m[0])
			}
		}
		labels := sorted(names)
		if before, ok := got[m[1]]; ok && before != labels {
			t.Errorf("%s has the labels %s and %s", m[1], before, labels)
		}
		got[m[1]] = labels
	}
	there := maps.Clone(documented)
	// dlo reports these metrics only while they have a value
	for _, name := range []string{"dlo_letters_overdue", "dlo_problems"} {
		if got[name] == "" {
			delete(there, name)
		}
	}
	if diff := cmp.Diff(there, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
